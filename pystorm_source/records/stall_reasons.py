"""Why a component cannot go on: one name for each reason, in counts, records, metrics, on the page and in advice."""

from typing import Literal, get_args

Reason = Literal[
    "downstream_full",
    "input_empty",
    "output_full",
    "nothing_to_emit",
    "max_spout_pending",
    "async_max_pending",
    "process_full",
    "process_busy",
    "source_unavailable",
    "rate_limit",
    "circuit_breaker",
]
REASONS: tuple[Reason, ...] = get_args(Reason)
"""Calls that take permits count the last two, the engine's turns the others."""

RATE_LIMIT: Reason = "rate_limit"
"""At least one call waits for a permit of ``topology.rate.limit``."""
CIRCUIT_BREAKER: Reason = "circuit_breaker"
"""At least one call waits for a permit, and the limit's circuit breaker is open."""

PROCESSES: tuple[Reason, Reason] = ("process_full", "process_busy")
"""Waits of a bolt with ``processes=``: its tuples are in its process, or wait for room there."""

LIMITS = (RATE_LIMIT, CIRCUIT_BREAKER)
"""Waits that more cores, tasks or requests do not shorten."""

WORDS: dict[Reason, str] = {
    "downstream_full": "waits for the bolt behind it",
    "input_empty": "waits for input",
    "output_full": "waits for Spark to take rows",
    "nothing_to_emit": "waits for its source",
    "max_spout_pending": "waits for open trees (topology.max.spout.pending)",
    "async_max_pending": "waits for free requests (topology.async.max.pending)",
    "process_full": "waits for room in the queue of its process (processes=)",
    "process_busy": "waits for its process to be done (processes=)",
    "source_unavailable": "waits for its source, which is unavailable",
    "rate_limit": "waits for permits (topology.rate.limit)",
    "circuit_breaker": "waits for an open circuit breaker",
}
"""What a component does in that time, for people."""
