"""``topology.spout.recvq.skips`` in a worker: it reaches the spouts, and no verdict is lost however large it is."""

import pytest

from pystorm_source import Spout
from tests.worker.running import Pass, above, numbers, topology, worker_of

KEY = "topology.spout.recvq.skips"


class Hundred(Spout):
    """0 .. 99, the next ten once all that were emitted are acked."""

    outputs = ["n long"]
    at = 0
    waits = 0

    def next_tuple(self):
        if self.waits:
            return None
        if self.at == 100:
            return False
        for n in range(self.at, self.at + 10):
            self.waits += 1
            self.emit((n,), n)
        self.at += 10
        return None

    def ack(self, tup_id):
        self.waits -= 1


@pytest.mark.parametrize("skips", [0, 3, 2**31 - 1])
def test_a_spout_that_waits_for_its_acks_gets_them(skips):
    worker = above(Pass, Hundred, overrides={KEY: skips})
    assert numbers(worker.run_slice("s", 1 << 40, 60_000)) == list(range(100))
    assert worker.report()["components"]["s"]["acked"] == 100
    worker.stop()


def test_each_spout_has_its_own_number():
    one, two = Hundred.spec(name="one", config={KEY: 7}), Hundred.spec(name="two")
    made = topology(one=one, two=two, b=Pass.spec(inputs=[one, two]))
    worker = worker_of(made, "b", overrides={KEY: 5})
    assert {executor.component: executor.skips for executor in worker.executors[:2]} == {"one": 7, "two": 5}
    worker.stop()
