"""What a topology asks of its caches is seen: in the record, the table of a notebook, the table of ``run``."""

import asyncio

import pytest

from pystorm_source import AsyncBolt, Bolt
from pystorm_source.cli.displays.run_table import rows_of
from pystorm_source.records.progress_table import as_text
from pystorm_source.records.record import CacheProgress, PystormProgress
from tests.counts.test_query_counts import SCHEDULED, Told
from tests.worker.running import Numbers, Pass, topology

pytestmark = pytest.mark.timeout(60)


class Ask(Bolt):
    outputs = ["n long"]

    def initialize(self, conf, context):
        self.tens = self.cache("tens", ttl=1000)

    def process(self, tup):
        self.emit([self.tens.get(tup.values[0] % 10, lambda key: key)])


class AskMany(AsyncBolt):
    outputs = ["n long"]

    def initialize(self, conf, context):
        self.tens = self.cache("tens", ttl=1000)

    async def fetch(self, key):
        await asyncio.sleep(0.001)
        return key

    async def process(self, tup):
        self.emit([await self.tens.get(tup.values[0] % 10, self.fetch)])


def told_of(bolt, scheduler="inline", par=1, processes=0):
    s = Numbers.spec()
    asks = bolt.spec(inputs=[s], par=par, processes=processes)
    return Told(topology(s=s, asks=asks, last=Pass.spec(inputs=[asks])), "last", scheduler=scheduler)


@SCHEDULED
@pytest.mark.parametrize("processes", [0, 1])
@pytest.mark.parametrize("bolt", [Ask, AskMany])
def test_hits_and_misses_are_in_the_record_of_each_micro_batch(bolt, processes, scheduler):
    told = told_of(bolt, scheduler, processes=processes)
    try:
        seen = []
        for batch, start in (("one", 0), ("two", 100), ("three", 200)):
            told.counts.begin(batch, 1)
            assert len(told.read(batch, start, start + 100)) == 100
            seen.append(told.counts.topology().caches)
    finally:
        told.worker.stop()
    assert seen[0] == (CacheProgress(component="asks", name="tens", hits=90, misses=10, entries=10),)
    assert seen[1] == seen[2] == (CacheProgress(component="asks", name="tens", hits=100, entries=10),)
    assert seen[0][0].hit_rate == 0.9 and seen[1][0].hit_rate == 1.0


@pytest.mark.parametrize("processes", [0, 2])
def test_tasks_and_processes_are_added_up(processes):
    told = told_of(Ask, "threads", par=4, processes=processes)
    try:
        told.counts.begin("one", 1)
        told.read("one", 0, 100)
        (found,) = told.counts.topology().caches
        report = told.worker.report()
    finally:
        told.worker.stop()
    assert found.hits + found.misses == 100
    assert found.misses == 10  # neighbours go to different processes, so each has the keys of its own
    assert found.entries == (5 if processes else 10)
    counted = report["components"]["asks"]["caches"]["tens"]
    assert counted == {"hits": found.hits, "misses": found.misses, "refreshes": 0, "entries": found.entries}


def test_tables_show_the_share_of_look_ups_without_a_call():
    told = told_of(Ask)
    try:
        told.counts.begin("one", 1)
        told.read("one", 0, 100)
        record, report = told.counts.topology(), told.worker.report()
    finally:
        told.worker.stop()
    record = PystormProgress.from_json(PystormProgress(topology=record).to_json())
    heading, *rows = as_text(record).splitlines()[2:]
    assert "cache hits" in heading
    assert [row for row in rows if row.startswith("asks") and "90%" in row]
    shown = {row.component: row.hits for row in rows_of(report, told.worker.plan.components, 1.0, "inline")}
    assert shown == {"s": "", "asks": "90%", "last": ""}


def test_without_a_cache_there_is_no_column():
    told = Told(topology(s=(s := Numbers.spec()), last=Pass.spec(inputs=[s])), "last")
    try:
        told.counts.begin("one", 1)
        told.read("one", 0, 100)
        assert told.counts.topology().caches == ()
        assert "cache hits" not in as_text(PystormProgress(topology=told.counts.topology()))
    finally:
        told.worker.stop()
