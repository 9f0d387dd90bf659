"""A slow bolt holds a query back: within two micro-batches its progress names the bolt."""

import pytest
from prometheus_client import CollectorRegistry
from pyspark.sql.datasource import DataSourceStreamReader
from typer.testing import CliRunner

from pystorm_source import PystormProgressListener, progress, ui
from pystorm_source.cli.main import app
from pystorm_source.errors import UsageError
from pystorm_source.observe import Prometheus
from pystorm_source.records.record_file import RecordFile
from tests.observe.page.browser import chromium, opened
from tests.observe.prometheus_server import eventually

pytestmark = [pytest.mark.spark, pytest.mark.every_spark, pytest.mark.timeout(180)]  # it may be the session's first

ROWS = 3_000  # of a micro-batch
SLOW = "sign"


class Watch:
    """A listener's callback: what Prometheus would read after each record."""

    def __init__(self):
        self.metrics = Prometheus(registry=CollectorRegistry())
        self.named = []
        self.has_ended = False

    def __call__(self, record):
        self.metrics(record)
        families = {family.name: family for family in self.metrics.registry.collect()}
        found = families.get("pystorm_bottleneck_capacity")
        self.named.append({(each.labels["component"], each.labels["why"]) for each in found.samples} if found else None)

    def query_ended(self, run_id):
        self.has_ended = True


@pytest.fixture
def watch(spark):
    listener = PystormProgressListener(Watch())
    spark.streams.addListener(listener)
    yield listener._callback
    spark.streams.removeListener(listener)


@pytest.mark.campaign
def test_all_that_look_name_the_slow_bolt(spark, world, watch, tmp_path):
    world.put(a=3 * ROWS // 2, b=3 * ROWS // 2)
    folder = tmp_path / "runs"
    options = world.options(maxOffsetsPerTrigger=ROWS, progress__path=str(folder))
    options["topology"] = "tests.source.watched:Signed"
    writer = spark.readStream.format("pystorm").options(**options).load().writeStream.format("noop")
    query = (
        writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(processingTime="0 seconds").start()
    )
    try:
        record = eventually(lambda: with_bottleneck(query))
        assert (record.bottleneck.component, record.bottleneck.why) == (SLOW, "busy")
        assert record.batch_id <= 1
        headline, advice = on_the_page(query, tmp_path / "page.html")
        assert headline.startswith(f"{SLOW} is the bottleneck: ")
        assert advice == record.bottleneck.advice
        query.processAllAvailable()
    finally:
        query.stop()
    eventually(lambda: watch.has_ended)
    # Spark reports the counts of the first one with the second one; Spark 4.0 and 4.1 have those of files alone.
    first = 1 if hasattr(DataSourceStreamReader, "reportLatestOffset") else 0
    assert watch.named[first:] == [{(SLOW, "busy")}] * len(watch.named[first:]) != []
    (file,) = folder.iterdir()
    assert f". slow bolt '{SLOW}'" in tuned(file, tmp_path / "first.jsonl")


def with_bottleneck(query):
    try:
        record = progress(query)
    except UsageError:  # of Spark 4.0 and 4.1: no task has reported yet
        return None
    return record if record is not None and record.bottleneck is not None else None


def on_the_page(query, page):
    """The headline and the advice, as the page computes them."""
    ui(query).save(page)
    with chromium() as browser, opened(browser, page.as_uri()) as drawn:
        return drawn.text_content("#verdict"), drawn.text_content("#advice")


def tuned(file, first):
    """What tune says if the run has had two micro-batches so far."""
    records = RecordFile(file).read().records[:2]
    first.write_text("".join(record.to_json() + "\n" for record in records))
    ended = CliRunner().invoke(app, ["tune", "--records", str(first), "--cores", "2"])
    assert ended.exit_code == 0, ended.output
    return ended.stdout
