"""The message about a service whose circuit breaker is open while a micro-batch waits for it."""

from datetime import UTC, datetime
from typing import Any, TypeAlias

OutageProgress: TypeAlias = Any
"""The struct of ``record``, which asks this module for the text: so it is not imported here."""


def outage_text(outage: OutageProgress) -> str:
    """One sentence for people, and what to do."""
    return (
        f"the circuit breaker of limit {outage.name!r} ({outage.rate}) is open: the service has failed since "
        f"{_time(outage.since)} ({outage.failed} of {outage.calls} calls); next probe at {_time(outage.probe_at)}. "
        f"Look at the service. The last error: {outage.error or 'none was given'}"
    )


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%H:%M:%S UTC")
