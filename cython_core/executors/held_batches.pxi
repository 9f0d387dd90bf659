"""Batches that an Arrow bolt keeps beyond their call, as a batching bolt keeps tuples.

    process_batch(batch) ─hold─► (batch, its tuples), … ──(tick, a bound)──► process(make): make(batches), then ack all
                                     │ wait as if queued: no time-out counts         │ its emits belong to all of them
                                     └ rows of trees that have failed meanwhile are left out: they come again

If ``make`` raises, all fail. What comes again after that comes by itself, so a bolt that processes it at once keeps a
row that always fails from failing others.

Threading law: as the executor.
"""

cimport cython

from cython_core.routing.batch_slice cimport BatchSlice
from cython_core.routing.output_collector cimport BoltOutputCollector, collector_of
from cython_core.tuples.tuple cimport OPEN, Tuple, gather, is_lost, take_gathered

import pyarrow as pa

from cython_core.routing.failure_kinds import FailureKind


@cython.final
cdef class HeldBatches:
    """``HeldBatches(bolt)``: of an ArrowBolt with ``auto_ack = False``. Empty."""

    def __init__(self, component):
        self.component = component
        self.held = []

    def __reduce__(self):
        """A component's state may be pickled: what it holds stays where it is."""
        return type(None), ()

    def __len__(self):
        return len(self.held)

    def hold(self, batch):
        """Keeps the batch that ``process_batch`` was given. Raises ValueError for another one."""
        cdef list tups = (<BoltOutputCollector?>collector_of(self.component)).tuples_of("hold", batch)
        for tup in tups:
            gather(<Tuple>tup)
        self.held.append((batch, tups))

    def comes_again(self, batch):
        """Whether its rows were emitted before, and have failed. Raises ValueError as ``hold``."""
        tups = (<BoltOutputCollector?>collector_of(self.component)).tuples_of("hold", batch)
        return comes_again(<Tuple>tups[0])

    def process(self, make):
        """Calls ``make`` with all that is held, if anything is left of it, and acks it. Nothing is held afterwards.

        Raises what ``make`` raises, and then has failed all rows (``auto_fail``).
        """
        cdef BoltOutputCollector collector = <BoltOutputCollector?>collector_of(self.component)
        cdef Tuple outer = collector.current
        cdef list outer_batch = collector.batch
        cdef list flat = []
        cdef Tuple tup
        for batch, _ in self.held:
            collector.batches.pop(id(batch), None)
        held = self.left()
        self.held = []
        if not held:
            return
        # Order: the time of what waited begins now, not at the last look at the clock.
        if collector.acker is not None and collector.acker.acker.timeout > 0:
            collector.acker.read_clock_now()
        for _, tups in held:
            flat += tups
        for tup in flat:
            take_gathered(tup)
        collector.current = None
        collector.batch = flat
        collector.batch_anchored = False
        try:
            make([batch for batch, _ in held])
            for _, tups in held:
                collector.settle_batch(tups, None)
        except Exception as error:
            if getattr(self.component, "auto_fail", True) or isinstance(error, FailureKind):
                for tup in flat:
                    if tup.verdict == OPEN:
                        collector.fail(tup, "process_batch", error)
            raise
        finally:
            collector.current = outer
            collector.batch = outer_batch
            collector.batch_roots = None
            collector.batch_anchored = False

    cdef list left(self):
        """What is held, without rows of trees that have failed.

        One that is taken out fails the other trees that it is in, and so may take out others that were looked at
        before.
        """
        cdef list held = self.held, still
        cdef bint lost = True
        while lost:
            lost, still = False, []
            for batch, tups in held:
                kept = [not is_lost(<Tuple>tup) for tup in tups]
                if all(kept):
                    still.append((batch, tups))
                    continue
                lost = True
                if any(kept) and not isinstance((<Tuple>tups[0]).payload, BatchSlice):
                    batch = batch.filter(pa.array(kept))
                    still.append((batch, [tup for tup, keep in zip(tups, kept) if keep]))
            held = still
        return held
