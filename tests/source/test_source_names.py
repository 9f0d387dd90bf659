"""Names of sources in the checkpoint: two that change places over a restart keep their offsets."""

import pytest

from pystorm_source import progress, read_stream
from tests.source.topologies import Doubled, Numbers
from tests.world import World

EVOLUTION = "spark.sql.streaming.queryEvolution.enableSourceEvolution"


@pytest.fixture
def evolving(spark):
    if not hasattr(spark.readStream, "name"):
        pytest.skip("no names of sources")
    spark.conf.set(EVOLUTION, "true")
    yield spark
    spark.conf.unset(EVOLUTION)


@pytest.mark.spark
def test_two_sources_that_change_places_over_a_restart_keep_their_offsets(evolving, tmp_path):
    worlds = {name: World(tmp_path / name) for name in ("plain", "twice")}
    for world in worlds.values():
        world.folder.mkdir()

    def run(*sources):
        frames = [
            read_stream(evolving, topology, path=str(worlds[name].folder), name=name).toDF("part", "n")
            for name, topology in sources
        ]
        rows = []
        writer = frames[0].union(frames[1]).writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer = writer.foreachBatch(lambda batch, number: rows.extend(map(tuple, batch.collect())))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return sorted(rows), {topology.__name__: progress(query, topology.__name__).rows for _, topology in sources}

    worlds["plain"].put(p=10)
    worlds["twice"].put(t=3)
    rows, _ = run(("plain", Numbers), ("twice", Doubled))
    assert rows == [*(("p", n) for n in range(10)), *(("t", 2 * n) for n in range(3))]
    worlds["plain"].put(p=12)
    worlds["twice"].put(t=5)
    rows, found = run(("twice", Doubled), ("plain", Numbers))
    assert rows == [("p", 10), ("p", 11), ("t", 6), ("t", 8)], "each goes on where it was"
    assert set(found) == {"Numbers", "Doubled"}, "records are found by the topology, wherever its source stands"
