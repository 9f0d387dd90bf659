"""Streaming queries through Spark with ``topology.scheduler=threads``: the rows are those of ``inline``."""

import pytest

from tests.source.queries import Query

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]


def stream(spark, world, topology, scheduler="threads", **options):
    given = world.options(topology, topology__scheduler=scheduler, **options)
    return spark.readStream.format("pystorm").options(**given).load()


@pytest.mark.campaign
def test_each_batch_has_the_rows_of_inline(spark, world, tmp_path):
    world.put(a=50, b=(10, 30), c=1)
    found = {}
    for scheduler in ("inline", "threads"):
        query = Query(tmp_path / scheduler)
        query.run(stream(spark, world, "Doubled", scheduler, maxOffsetsPerTrigger=20))
        world.put(c=40)
        query.run(stream(spark, world, "Doubled", scheduler, maxOffsetsPerTrigger=20))
        world.put(c=1)
        found[scheduler] = query.batches
    assert found["threads"] == found["inline"]
    wanted = (
        [("a", 2 * n) for n in range(50)] + [("b", 2 * n) for n in range(10, 30)] + [("c", 2 * n) for n in range(40)]
    )
    assert sorted(row for _, rows in found["threads"] for row in rows) == wanted


def test_a_bolt_runs_in_a_thread_of_its_own(spark, world, tmp_path):
    world.put(a=5)
    assert Query(tmp_path / "t").run(stream(spark, world, "ThreadNames")) == [
        [("a", n, "pystorm-named-2") for n in range(5)]
    ]
    assert Query(tmp_path / "i").run(stream(spark, world, "ThreadNames", "inline")) == [
        [("a", n, "MainThread") for n in range(5)]
    ]


@pytest.mark.campaign
def test_a_restart_from_the_checkpoint_replays_the_same_rows(spark, world, tmp_path):
    world.put(a=300, b=200)
    query = Query(tmp_path)
    first = query.run(stream(spark, world, "Doubled", maxOffsetsPerTrigger=250))
    assert [len(rows) for rows in first] == [250, 250]
    query.forget_commit()
    world.put(a=400)
    again = query.run(stream(spark, world, "Doubled", maxOffsetsPerTrigger=250))
    assert again == [first[1], [("a", 2 * n) for n in range(300, 400)]]
    assert [number for number, _ in query.batches] == [0, 1, 1, 2]


@pytest.mark.campaign
def test_a_restart_may_change_the_scheduler(spark, world, tmp_path):
    world.put(a=100)
    query = Query(tmp_path)
    first = query.run(stream(spark, world, "Doubled", "inline", maxOffsetsPerTrigger=60))
    query.forget_commit()
    assert query.run(stream(spark, world, "Doubled", "threads", maxOffsetsPerTrigger=60)) == [first[-1]]


@pytest.mark.campaign
@pytest.mark.parametrize("how", ["raise", "fail", "kill"])
def test_a_failed_task_is_tried_again(spark, world, tmp_path, how):
    world.put(a=10, b=10)
    rows = [[(part, n) for part in ("a", "b") for n in range(10)]]
    assert Query(tmp_path).run(stream(spark, world, "FailsOnce", how=how)) == rows
    assert (world.folder / "failed.log").exists()
