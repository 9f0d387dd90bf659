"""What a local run says of itself, from the counts of two readings."""

import pytest

from pystorm_source.clock import ManualClock
from pystorm_source.plan import compile_plan
from pystorm_source.spouts import MemorySpout
from pystorm_source.worker.local_run import LocalRun
from pystorm_source.worker.local_status import LocalStatus, Status
from tests.worker.running import Numbers, Pass, topology


def counts(tuples=0, busy=0.0, mean=0.0, stalled=0.0, **more):
    return {
        "executed": tuples,
        "emitted": tuples,
        "busy_seconds": busy,
        "latency": {"count": tuples, "total": tuples * mean},
        "stall_seconds": {"downstream_full": stalled},
        **more,
    }


def said(*readings, backlog=100):
    """The status after these readings, a second apart: each of spout s and bolt b."""
    spout = MemorySpout.spec(fields=["n long"], rows=[[1]])
    local = LocalRun(compile_plan(topology(s=spout, b=Pass.spec(inputs=[spout]))))
    local.unread.backlog = backlog
    status = LocalStatus(local)
    for second, (s, b) in enumerate(readings):
        found = status.look({"components": {"s": s, "b": b}} if s else {}, float(second))
    return found


IDLE = (counts(), counts())


def test_it_starts_and_reads():
    assert said(({}, {})) == Status("starting", "starting")
    assert said(({}, {}), IDLE) == Status("reading", "reading")
    assert said(IDLE, (counts(1000, 0.3), counts(1000, 0.5, 0.0005))) == Status("reading", "reading")


def test_between_two_readings_it_stays_as_it_was():
    spout = MemorySpout.spec(fields=["n long"], rows=[[1]])
    status = LocalStatus(LocalRun(compile_plan(topology(s=spout))))
    for now in (0.0, 0.25, 0.5, 0.75):
        assert status.look({"components": {"s": counts()}}, now).state == "reading"
    assert status.look({"components": {"s": counts()}}, 1.0).state == "waiting"


def test_nothing_moves():
    assert said(IDLE, IDLE, backlog=0) == Status("waiting", "waiting for input")
    assert said(IDLE, IDLE) == Status("waiting", "waiting for acks, retries or time-outs")
    asking = (counts(), counts(pending_requests=1200))
    assert said(IDLE, asking) == Status("waiting", "waiting for 1,200 requests of 'b'", "b")
    away = (counts(), counts(away=1))
    assert said(IDLE, away) == Status("waiting", "waiting for the process of 'b', which has 1 tuple", "b")


def test_a_slow_component_is_named_if_something_waits_for_it():
    slow = (counts(20, 0.01), counts(10, 0.99, 0.1, queue_population=1024))
    assert said(IDLE, slow) == Status(
        "stalled", "stalled by 'b': a call takes 100 ms, 1,024 tuples are in its queue", "b"
    )
    assert said(IDLE, slow, backlog=0).state == "reading"
    full = (counts(20, 0.01, stalled=0.95), slow[1])
    assert said(IDLE, full, backlog=0).state == "stalled"


def test_at_full_speed_the_slowest_is_named_but_nothing_stalls():
    fast = (counts(900_000, 0.15, stalled=0.9), counts(900_000, 0.8, 1e-6))
    assert said(IDLE, fast) == Status("reading", "reading; the others wait for 'b'", "b")


def test_a_spout_that_does_not_end_its_range_is_named():
    class NeverEnds(Numbers):
        def next_tuple(self):
            return None

    local = LocalRun(compile_plan(topology(s=NeverEnds.spec())))
    local.unread.look()
    status = LocalStatus(local)
    spoken = []

    class Looks(ManualClock):
        def sleep(self, seconds):
            super().sleep(seconds + 1)
            spoken.append(status.look(local.counts().report, self.now))
            if len(spoken) > 3:
                raise KeyboardInterrupt

    local.clock = Looks()
    with pytest.raises(KeyboardInterrupt):
        local.round(local.unread.next_ranges())
    assert spoken[-1] == Status(
        "waiting", "waiting for 's': next_tuple() emits nothing and has not returned False, which ends its range", "s"
    )
