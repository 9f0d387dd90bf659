"""Bolts that gather tuples and process them in groups, as pystorm's BatchingBolt does; compiled per tuple.

    process(tup) ──► _batches[group_key(tup)] ──(tick, timer, count, end of micro-batch)──► process_batches
                                                                  each group: process_batch(key, tups), then ack all

The rules are pystorm's (its bolt.BatchingBolt), the empty groups that it hands out after a failure excepted: here a
group is gone once it was processed or failed. No thread and no signal: the executor's turn drives everything.

Threading law: as the executor.
"""

from collections import defaultdict

from cython_core.output_collector cimport BoltBase, BoltOutputCollector, collector_of, collector_or_none
from cython_core.tuple cimport OPEN, Tuple


cdef class BatchingBase(BoltBase):
    """What batching bolts inherit; the attributes stand in the instance: ``_batches`` (group key → list of Tuples),
    ``_tick_counter``, ``_current_key``."""

    def _reset_batches(self):
        """Forgets every batch. Called before the first tuple."""
        self._batches = defaultdict(list)
        self._tick_counter = 0
        self._current_key = None
        self._held = 0

    def process(self, tup):
        """Puts the tuple into the batch of its group. Override ``group_key`` and ``process_batch``, not this."""
        self._batches[self.group_key(tup)].append(tup)
        wanted = self.tuples_between_batches
        if wanted is not None:
            self._held += 1
            if self._held >= wanted:
                self.process_batches()
                self._tick_counter = 0

    def process_tick(self, tup):
        """Counts the tick; processes the batches where more than ``ticks_between_batches`` were counted."""
        self._tick_counter += 1
        if self._tick_counter > self.ticks_between_batches and self._batches:
            self.process_batches()
            self._tick_counter = 0

    def process_batches(self):
        """Calls ``process_batch`` for each group, oldest first, and acks its tuples (``auto_ack``)."""
        cdef BoltOutputCollector collector
        cdef Tuple outer
        cdef Tuple tup
        cdef list batch
        if collector_or_none(self) is None:
            return self._process_batches_alone()
        collector = <BoltOutputCollector?>collector_of(self)
        outer = collector.current
        collector.current = None
        try:
            while self._batches:
                key = next(iter(self._batches))
                batch = self._batches[key]
                self._current_key = key
                collector.batch = batch
                if batch:
                    self.process_batch(key, batch)
                    if self.auto_ack:
                        for tup in batch:
                            collector.ack(tup)
                # Order: gone only now, so that an exception still finds the group.
                collector.batch = None
                self._current_key = None
                self._batches.pop(key, None)
            self._held = 0
        finally:
            collector.current = outer

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

    def _fail_batches(self, everything):
        """After an exception in ``process_batch``: fails the group that it was in, or all; what is failed is gone."""
        cdef BoltOutputCollector collector = <BoltOutputCollector?>collector_of(self)
        cdef Tuple tup
        keys = list(self._batches) if everything else [self._current_key]
        for key in keys:
            for tup in self._batches.pop(key, ()):
                if self.auto_fail and tup.verdict == OPEN:
                    collector.fail(tup)
        self._held = sum([len(batch) for batch in self._batches.values()])
        collector.batch = None
        self._current_key = None
