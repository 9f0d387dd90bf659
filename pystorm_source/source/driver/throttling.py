"""Why and how much a micro-batch is throttled: for people, in a query's progress and in the log."""

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np

from pystorm_source.clock import Clock
from pystorm_source.source.admission.batch_budget import BatchBudget
from pystorm_source.source.admission.limits import Limits
from pystorm_source.source.admission.rate_estimator import Reason
from pystorm_source.source.offsets.micro_batch import Waiting
from pystorm_source.source.offsets.partition_index import Column

logger = logging.getLogger("pystorm.source")

NOTABLE = 1.5
"""A limit is logged if it changed by this factor. Too large: a query that slows down says nothing. Too small: noise is
logged."""
QUIET_SECONDS = 10.0
"""Seconds between two such lines at least. Too large: the log lags behind. Too small: it fills up."""
MOST_PERCENT = 1_000_000
"""Pressure is shown up to this. Without a bound, an endless backlog would print an unreadable number."""


@dataclass(frozen=True)
class Throttling:
    """What bounds one micro-batch. ``limit``: the most offsets it may read, None for any number; ``reason``: why;
    ``by``: reason → how many partitions leave a backlog behind because of it. The controller's figures, None without
    one: ``budget``: the offsets that it grants; ``pressure``: backlog in percent of one micro-batch at the target;
    ``target_millis``."""

    limit: int | None
    reason: Reason
    by: dict[str, int]
    budget: int | None = None
    pressure: int | None = None
    target_millis: int | None = None

    @classmethod
    def of(cls, waits: Waiting, ends: Column, limits: Limits, budget: BatchBudget | None = None) -> "Throttling":
        """``waits``: the readable offsets."""
        left = ends < waits.head
        if budget is None:
            limit = limits.total
            reasons = np.where(left, Reason.USER_LIMIT, Reason.NONE)
        else:
            held = budget.throttled.any()
            most = [limits.total] if limits.total is not None else []
            limit = min([*most, budget.total], default=None) if held else limits.total
            reasons = np.where(left, _reasons(budget, limits), Reason.NONE)
        counts = np.bincount(reasons, minlength=len(Reason)).tolist()
        by = {reason.text: counts[reason] for reason in Reason if counts[reason] and reason is not Reason.NONE}
        reason = Reason(int(np.argmax(counts[1:])) + 1) if by else Reason.NONE
        if budget is None:
            return cls(limit, reason, by)
        pressure = min(MOST_PERCENT, round(100 * budget.pressure))
        return cls(limit, reason, by, budget.total, pressure, round(1000 * budget.target))

    def to_json(self) -> dict[str, Any]:
        """Ints and strings; keys that do not apply are left out."""
        shown = {
            "budget": self.budget,
            "limit": self.limit,
            "pressure": self.pressure,
            "reason": self.reason.text,
            "targetMillis": self.target_millis,
            "throttledBy": self.by,
        }
        return {name: value for name, value in shown.items() if value is not None}


def _reasons(budget: BatchBudget, limits: Limits) -> Column:
    """Why partitions leave a backlog behind."""
    users = budget.reasons == Reason.NONE
    if limits.partitions is not None or (limits.total is not None and limits.total < budget.total):
        users = np.ones(len(users), bool)
    elif limits.per_partition is not None:
        users |= (budget.offsets < 0) | (budget.offsets > limits.per_partition)
    return np.where(users, Reason.USER_LIMIT, budget.reasons)


class ThrottleLog:
    """Says in the log when the limit of a query's micro-batches has changed notably, at most every QUIET_SECONDS."""

    def __init__(self, clock: Clock):
        self._clock = clock
        self._said: int | None = None
        self._quiet_until = 0.0

    def log(self, throttling: Throttling, backlog: int) -> None:
        """Logs at most one line. ``backlog``: offsets that wait."""
        # A limit that the user has set is no news to them, and if nothing waits nothing is held back.
        own = throttling.reason in (Reason.NONE, Reason.USER_LIMIT)
        limit, now = None if own else throttling.limit, self._clock.monotonic()
        if throttling.budget is None or not _is_notable(self._said, limit) or now < self._quiet_until:
            return
        self._said, self._quiet_until = limit, now + QUIET_SECONDS
        if limit is None:
            logger.info("micro-batches are not throttled any more: all that waits is read, up to limits of your own")
        else:
            logger.info(
                "micro-batches read at most %d offsets (%s): the %d that wait fill %s micro-batches of %d ms (the "
                "words: docs/ADMISSION.md, Reading the progress)",
                limit,
                throttling.reason.text,
                backlog,
                f"{(throttling.pressure or 0) / 100:,.1f}",
                throttling.target_millis,
            )


def _is_notable(before: int | None, limit: int | None) -> bool:
    if before is None or limit is None:
        return before is not limit
    return max(before, limit) >= NOTABLE * min(before, limit)
