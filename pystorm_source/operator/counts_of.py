"""What the components of an operator have done, from what Spark has observed."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql.types import StructType

from pystorm_source.api.topology import Topology
from pystorm_source.errors import ArgumentTypeError, given
from pystorm_source.errors.door import door
from pystorm_source.operator.apply import operator_of
from pystorm_source.operator.read_counts import read_counts
from pystorm_source.options.hidden import meant
from pystorm_source.records.record import TopologyProgress
from pystorm_source.spark.plan_options import option_texts


@door
def counts_of(
    topology: type[Topology] | str,
    seen: Mapping[str, Any],
    *,
    options: Mapping[str, Any] | None = None,
    **keywords: Any,
) -> TopologyProgress:
    """Returns what an operator's components have done in a micro-batch or a batch query, like ``progress`` for a
    source: executed, emitted, acked, failed, latencies, errors, and the bottleneck.

    Args:
        topology (type[Topology] | str): the class that ``apply`` had, or "package.module:Class".
        seen (Mapping[str, Any]): ``query.lastProgress.observedMetrics["name"].asDict()`` of ``apply(df, Topology,
            counts="name")``, or ``Observation.get``.
        options (Mapping[str, Any]): options as ``apply`` had them, where they change components or their instances.
            Defaults to no options.
        **keywords (Any): more of them.

    Returns:
        TopologyProgress: the counts, added up over all tasks.

    Raises:
        ArgumentTypeError: something else was observed.
        TopologyError: the topology cannot run as it is declared, or does not begin with one ``Input``.

    Example:
        >>> from pyspark.sql import Observation
        >>> from pystorm_source import Bolt, Input, Topology, apply, counts_of
        >>> class Double(Bolt):
        ...     outputs = ["twice long"]
        ...     def process(self, tup):
        ...         self.emit([2 * tup.values.n])
        >>> class Doubles(Topology):
        ...     rows = Input.spec(["n long"])
        ...     double = Double.spec(inputs=[rows])
        >>> seen = Observation("doubles")
        >>> doubled = apply(spark.range(10).withColumnRenamed("id", "n"), Doubles, counts=seen).collect()
        >>> counts_of(Doubles, seen.get).component("double").batch.executed
        10
    """
    asked = meant(option_texts(keywords, options or {}))
    _, operator, _ = operator_of(StructType(), topology, asked, any_columns=True)
    found = read_counts(operator.plan, operator.output, seen)
    if found is None:
        raise _not_observed(seen)
    return found


def _not_observed(seen: object) -> ArgumentTypeError:
    return ArgumentTypeError(
        "counts_of() takes the class that apply(df, Topology, counts='name') had, and what that has observed: "
        "query.lastProgress.observedMetrics['name'].asDict(), or Observation.get. "
        f"Given: {given(seen)}",
        code="PYSTORM_INVALID_ARGUMENT",
    )
