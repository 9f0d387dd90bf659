"""Where tasks of operators get permits of rate limits."""

from functools import partial
from typing import TYPE_CHECKING

from pystorm_source.channel.leases.checks import SPECULATION, check_limits, refuse_speculation
from pystorm_source.channel.leases.operator_leases import endpoint_of, outages_of
from pystorm_source.channel.reports.endpoint import ReportEndpoint
from pystorm_source.options import SourceOptions
from pystorm_source.plan import Plan
from pystorm_source.query.operator_outages import note_outages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def permits_of(plan: Plan, spark: "SparkSession", found: SourceOptions) -> ReportEndpoint | None:
    """Returns where tasks get permits of the plan's limits; None if it has no limits, a Redis gives the permits, or
    each task has a fixed share.

    Raises OptionError if limits cannot hold, WorldError if this process cannot listen.
    """
    if not plan.options.limits:
        return None
    try:
        context = spark.sparkContext
    except Exception:  # Spark Connect has no context: tasks cannot reach this process
        check_limits(plan.options, "apply() over Spark Connect")
        return None
    refuse_speculation(plan.options, context.getConf().get(SPECULATION, "false"))
    check_limits(plan.options)
    if plan.options.rate_limit_redis or plan.options.rate_limit_tasks is not None:
        return None
    note_outages(plan.name, partial(outages_of, plan.name))
    return endpoint_of(plan.name, plan.options, context.master or "", found.feedback_host, found.feedback_port)
