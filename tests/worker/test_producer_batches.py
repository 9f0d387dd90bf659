"""The keys of producer batches: what the inserters of a worker are, and that rows and their order stay the same."""

import pytest

from pystorm_source.errors import OptionError
from tests.worker.running import Batches, Numbers, Pass, numbers, topology, worker_of

QUEUE = "topology.executor.receive.buffer.size"
BATCH = "topology.producer.batch.size"
DYNAMIC = "topology.producer.batch.dynamic"


def chain(spout, conf):
    s = spout.spec()
    b = Pass.spec(inputs=[s])
    return worker_of(topology(s=s, b=b, last=Pass.spec(inputs=[b])), "last", overrides=conf)


@pytest.mark.parametrize(
    ("conf", "size", "dynamic"),
    [
        ({}, 100, False),
        ({BATCH: 7}, 7, False),
        ({BATCH: 1}, 1, False),
        ({QUEUE: 2}, 1, False),
        ({QUEUE: 150}, 75, False),
        ({DYNAMIC: True}, 100, True),
        ({DYNAMIC: "true", QUEUE: "20"}, 10, True),
        ({DYNAMIC: True, BATCH: 1}, 1, False),
    ],
)
@pytest.mark.parametrize("spout", [Numbers, Batches])
def test_batches_are_as_large_as_asked_and_change_no_row(spout, conf, size, dynamic):
    worker = chain(spout, conf)
    inserters = [inserter for executor in worker.executors for inserter in executor.inserters]
    assert {(inserter.size, inserter.dynamic) for inserter in inserters} == {(size, dynamic)}
    assert numbers(worker.run("s", "p", 0, 700)) == list(range(700))
    assert [(len(inserter), inserter.published) for inserter in inserters] == [(0, 700)] * len(inserters)


def test_a_batch_that_was_asked_for_and_is_too_large_is_refused():
    with pytest.raises(OptionError, match=f"{BATCH} is at most half of {QUEUE}.*lower the batch.*Given: 100"):
        chain(Numbers, {QUEUE: 150, BATCH: 100})
