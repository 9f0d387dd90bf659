"""The counts of an operator's components, from the reports that Spark has observed. Driver only."""

from collections.abc import Mapping
from typing import Any

from pystorm_source.channel.reports.task_report import decode
from pystorm_source.counts.query_counts import QueryCounts
from pystorm_source.operator.report_column import OPERATOR, REPORTS
from pystorm_source.plan import Plan
from pystorm_source.records.record import TopologyProgress
from pystorm_source.worker.output import OutputPlan


def read_counts(plan: Plan, output: OutputPlan, seen: Mapping[str, Any]) -> TopologyProgress | None:
    """What the components of an operator have done, by its tasks' reports; None if something else was observed."""
    if not isinstance(seen.get(REPORTS), (list, tuple)):
        return None
    counts = QueryCounts(plan, output, "")
    counts.begin(OPERATOR, len(seen[REPORTS]))
    for text in seen[REPORTS]:
        try:
            counts.add(decode(text.encode(), 0.0))
        except (AttributeError, ValueError):  # no text, no report, or one of another topology
            return None
    return counts.topology() or TopologyProgress(name=plan.name)
