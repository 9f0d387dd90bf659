"""Bolts that gather tuples and process them in groups, as pystorm's BatchingBolt does; compiled per tuple.

    process(tup) ──► _batches[group_key(tup)] ──(tick, timer, count, end of micro-batch)──► process_batches
                                                                  each group: process_batch(key, tups), then ack all

The rules are pystorm's (its bolt.BatchingBolt), the empty groups that it hands out after a failure excepted: here a
group is gone once it was processed or failed. No thread and no signal: the executor's turn drives everything.

Threading law: as the executor.
"""

cimport cython
from collections import OrderedDict

from cython_core.routing.component_base cimport BoltBase
from cython_core.routing.output_collector cimport (
    BoltOutputCollector, OutputCollector, collector_of, collector_or_none, refuse_rows,
)
from cython_core.tuples.tuple cimport OPEN, Tuple, gather, is_final_tick, is_lost, take_gathered

from cython_core.arrow.row_error import coded, shown

include "held_batches.pxi"
include "joining.pxi"


class Groups(OrderedDict):
    """Group key → its tuples, oldest group first.

    Not a defaultdict: that finds its first key by a walk over the places of those that are gone, so that a hundred
    thousand groups, each taken out from the front, would be five thousand million steps.
    """

    def __missing__(self, key):
        cdef list group = []
        self[key] = group
        return group


cdef int leave_out_lost(object batch) except -1:
    """Takes out of a group the tuples whose trees have failed meanwhile: they come again, and would take those that
    share a row with them along.

    One that is taken out fails the other trees that it is in, and so may take out others that were looked at before.
    """
    cdef Py_ssize_t before = -1
    if isinstance(batch, list):
        while len(<list>batch) != before:
            before = len(<list>batch)
            kept = [each for each in <list>batch if not (isinstance(each, Tuple) and is_lost(<Tuple>each))]
            if len(kept) < before:
                batch[:] = kept
    return 0


@cython.auto_pickle(True)
cdef class BatchingBase(BoltBase):
    """What batching bolts inherit; the attributes stand in the instance: ``_batches`` (group key → list of Tuples),
    ``_tick_counter``, ``_current_key``."""

    def _reset_batches(self):
        """Forgets every batch. Called before the first tuple."""
        self._batches = Groups()
        self._tick_counter = 0
        self._current_key = None
        self._held = 0

    def process(self, tup):
        """Puts the tuple into the batch of its group. Override ``group_key`` and ``process_batch``, not this.

        Args:
            tup (Tuple): the tuple.

        Raises:
            TypeError: a key that is not hashable.
        """
        cdef OutputCollector collector
        key = self.group_key(tup)
        try:
            self._batches[key].append(tup)
        except TypeError:
            raise coded(
                TypeError,
                "PYSTORM_INVALID_RETURN_VALUE",
                f"{type(self).__name__}.group_key must answer something hashable, such as a str or a tuple; "
                f"Given: {shown(key)}"
            ) from None
        collector = collector_or_none(self)
        if collector is not None and (<BoltOutputCollector>collector).gathers and isinstance(tup, Tuple):
            gather(<Tuple>tup)
        wanted = self.tuples_between_batches
        if wanted is not None:
            self._held += 1
            if self._held >= wanted:
                self.process_batches()
                self._tick_counter = 0

    def process_tick(self, tup):
        """Counts the tick; processes the batches if more than ``ticks_between_batches`` were counted.

        The tick that ends a range is not counted: time has not brought it. What is held is processed at it.

        Args:
            tup (Tuple): the tick.
        """
        if is_final_tick(tup):
            if self._batches:
                self.process_batches()
                self._tick_counter = 0
            return
        self._tick_counter += 1
        if self._tick_counter > self.ticks_between_batches and self._batches:
            self.process_batches()
            self._tick_counter = 0

    def process_batches(self):
        """Calls ``process_batch`` for each group, oldest first, and acks its tuples (``auto_ack``)."""
        cdef BoltOutputCollector collector
        cdef Tuple outer, tup
        cdef list tups
        if collector_or_none(self) is None:
            return self._process_batches_alone()
        collector = <BoltOutputCollector?>collector_of(self)
        outer = collector.current
        try:
            while self._batches:
                # Order: the time of what waited begins with its own group, not at the last look at the clock.
                if collector.acker is not None and collector.acker.acker.timeout > 0:
                    collector.acker.read_clock_now()
                key = next(iter(self._batches))
                batch = self._batches[key]
                leave_out_lost(batch)
                tups = [tup for tup in batch if isinstance(tup, Tuple)]  # whatever the bolt does to its list
                for tup in tups:
                    take_gathered(tup)
                self._current_key = key
                collector.current = None
                collector.batch = tups
                collector.batch_anchored = False
                if batch:
                    emits = collector.emits
                    try:
                        answer = self.process_batch(key, batch)
                        if answer is not None and collector.emits == emits:
                            refuse_rows(collector, "process_batch", answer)
                    except BaseException as error:
                        collector.broken = (error, tups, key, "process_batch")
                        raise
                    if self.auto_ack:
                        for tup in tups:
                            collector.ack(tup)
                # Order: gone only now, so that an exception still finds the group.
                self._batches.pop(key, None)
            self._held = 0
        finally:
            self._current_key = None
            collector.batch = None
            collector.batch_roots = None
            collector.batch_anchored = False
            collector.current = outer

    def _time_is_over(self, double now):
        """The timer has gone off that ``secs_between_batches`` asks for. ``now``: of the scheduler's clock, in
        seconds."""
        if self._batches:
            self.process_batches()
            self._tick_counter = 0

    def _process_batches_alone(self):
        """In no topology, as in a unit test: the same, by the methods that the test may have replaced."""
        while self._batches:
            key = self._current_key = next(iter(self._batches))
            batch = self._current_tups = self._batches[key]
            self.process_batch(key, batch)
            if self.auto_ack:
                for tup in batch:
                    self.ack(tup)
            self._current_key = None
            self._current_tups = []
            self._batches.pop(key, None)
        self._held = 0

    def _fail_batches(self, everything, key, tups, cause, fails):
        """After an exception in ``process_batch``: fails (``fails``) the group that it was in, or all. It is gone
        then."""
        cdef BoltOutputCollector collector = <BoltOutputCollector?>collector_of(self)
        groups = [list(tups)]
        self._batches.pop(key, None)
        if everything:
            groups += list(self._batches.values())
            self._batches.clear()
        for group in groups:
            for tup in group:
                if fails and isinstance(tup, Tuple) and (<Tuple>tup).verdict == OPEN:
                    collector.fail(<Tuple>tup, "process_batch", cause)
        self._held = sum([len(batch) for batch in self._batches.values()])
