"""Whether rate limits can hold where a topology is to run."""

from pystorm_source.errors import OptionError
from pystorm_source.options import EngineOptions
from pystorm_source.options.rate_limit import KEY

SPECULATION = "spark.speculation"


def refuse_without_server(options: EngineOptions, where: str) -> None:
    """Raises OptionError if tasks are to share limits and no process gives permits. ``where``: what is to run."""
    if options.limits and options.rate_limit_tasks is None:
        raise OptionError(
            f"{where} has no process that gives its tasks permits: give each a fixed share of a limit by "
            "topology.rate.limit.tasks, the number of tasks that run at a time at most. Given: "
            f"{KEY}={options.rate_limit!r}",
            code="PYSTORM_OPTIONS_CONFLICT",
        )


def refuse_speculation(options: EngineOptions, speculation: str) -> None:
    """Raises OptionError if a task may run twice at a time: its calls would be made twice."""
    if options.limits and speculation.strip().lower() == "true":
        raise OptionError(
            f"with {SPECULATION}=true a slow task runs twice at a time, and so do its calls: switch it off for "
            f"topologies that call services. Given: {KEY}={options.rate_limit!r}",
            code="PYSTORM_OPTIONS_CONFLICT",
        )
