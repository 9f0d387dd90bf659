"""Checks that rate limits can be kept in the place where a topology will run."""

from pystorm_source.channel.leases.redis_schedule import connection_to
from pystorm_source.errors import OptionError
from pystorm_source.options import EngineOptions
from pystorm_source.options.rate_limit import KEY

SPECULATION = "spark.speculation"


def check_limits(options: EngineOptions, without_server: str = "") -> None:
    """Raises OptionError if tasks share limits but nothing gives permits, or if the Redis cannot be asked.

    ``without_server``: names what will run, if no process of this package gives its tasks permits.
    """
    if not options.limits:
        return
    if options.rate_limit_redis:
        connection_to(options.rate_limit_redis)  # does not connect: the driver need not reach what executors do
    elif without_server and options.rate_limit_tasks is None:
        raise OptionError(
            f"{without_server} has no process that gives its tasks permits: let a Redis give them, by "
            "topology.rate.limit.redis, such as redis://host:6379/0; or give each task a fixed share of a limit by "
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
