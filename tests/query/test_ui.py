"""The page of a query in the process that holds it, and its progress in a few lines."""

import json
import re
import time
from html import unescape

import msgspec
import nbformat
import pytest
from nbclient import NotebookClient

from pystorm_source import Bolt, Topology, read_stream, show_progress, ui
from pystorm_source.errors import OptionError, UsageError
from pystorm_source.observe.page.view import View
from pystorm_source.spouts import MemorySpout
from tests.source.topologies import Doubled, Numbers

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]


class Slow(Bolt):
    outputs = ["n long"]

    def process(self, tup):
        time.sleep(0.001)
        self.emit([tup.values.n])


class Same(Bolt):
    outputs = ["n long"]

    def process(self, tup):
        self.emit([tup.values.n])


class SlowSecond(Topology):
    numbers = MemorySpout.spec(fields=["n long"], rows=[[n] for n in range(3000)])
    first = Same.spec(inputs=[numbers])
    second = Slow.spec(inputs=[first])
    third = Same.spec(inputs=[second])


def started(spark, world, folder, topology=Doubled, **trigger):
    stream = read_stream(spark, topology, path=str(world.folder), options={"maxOffsetsPerTrigger": 20})
    writer = stream.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint"))
    return writer.trigger(**(trigger or {"availableNow": True})).start()


def shown(text: str) -> View:
    """What a page draws."""
    (data,) = re.findall(r'<script type="application/json" id="view">(.*?)</script>', text, re.DOTALL)
    return msgspec.json.decode(data, type=View)


def test_the_page_of_a_query_that_has_ended_has_all_its_micro_batches(spark, world, tmp_path):
    world.put(a=30, b=12)
    query = started(spark, world, tmp_path)
    assert query.awaitTermination(90)
    page = ui(query)
    page.save(tmp_path / "page.html")
    view = shown((tmp_path / "page.html").read_text())
    assert (view.title, view.state, view.series.batch) == ("Doubled", "ended", (0, 1, 2))
    assert sum(view.series.rows) == 42
    assert {component.name for component in view.last.topology.components} >= {"numbers"}
    assert ".save(FILE)" in repr(page)


@pytest.mark.campaign
def test_a_slow_bolt_is_named_within_two_micro_batches(spark, tmp_path, capsys):
    stream = read_stream(spark, SlowSecond, options={"maxOffsetsPerTrigger": 1500, "batch.target.millis": 60_000})
    query = stream.writeStream.format("noop").trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    page = ui(query)
    page.save(tmp_path / "page.html")
    view = shown((tmp_path / "page.html").read_text())
    assert view.series.batch == (0, 1) and view.last.bottleneck.component == "second"
    assert {edge.transferred for edge in view.last.topology.edges} == {1500}
    show_progress(query)
    assert "second is the bottleneck" in capsys.readouterr().out


@pytest.mark.parametrize("show", [ui, show_progress])
def test_what_is_no_query_is_refused(show):
    with pytest.raises(UsageError, match="PYSTORM_INVALID_ARGUMENT"):
        show(None)


def test_a_page_that_cannot_be_written_says_so(spark, world, tmp_path):
    world.put(a=3)
    query = started(spark, world, tmp_path)
    assert query.awaitTermination(90)
    with pytest.raises(OptionError, match="PYSTORM_NOT_WRITABLE.*Given: '/nowhere/page.html'"):
        ui(query).save("/nowhere/page.html")


def test_show_progress_prints_each_micro_batch_of_a_log(spark, world, tmp_path, capsys):
    world.put(a=30)
    query = started(spark, world, tmp_path)
    assert query.awaitTermination(90)
    show_progress(query)
    assert "micro-batch 1: " in capsys.readouterr().out


def test_show_progress_returns_after_its_time_though_the_query_runs_on(spark, world, tmp_path, capsys):
    world.put(a=30)
    query = started(spark, world, tmp_path, Numbers, processingTime="0 seconds")
    try:
        query.processAllAvailable()
        show_progress(query, timeout=0.5, every=0.1)
        assert query.isActive and "micro-batch" in capsys.readouterr().out
    finally:
        query.stop()


NOTEBOOK = """
from pyspark.sql import SparkSession
from pystorm_source import Topology, read_stream, ui
from pystorm_source.spouts import RateSpout

class Beats(Topology):
    beats = RateSpout.spec(rows_per_second=50)

spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
         .config("spark.driver.memory", "512m").getOrCreate())
query = read_stream(spark, Beats).writeStream.format("noop").trigger(processingTime="200 milliseconds").start()
"""


@pytest.mark.campaign
def test_in_a_notebook_one_output_is_refreshed_in_place_when_the_cell_has_ended(tmp_path):
    """In a real kernel: the second cell shows the page, the third waits until it has been replaced."""
    waits = "import time\nend = time.monotonic() + 60\nwhile len(page._found.records) < 3: time.sleep(0.1)\n"
    waits += "    \nassert time.monotonic() < end\nquery.stop(); page._thread.join(30); print(page)\nspark.stop()"
    cells = [NOTEBOOK, "page = ui(query, every=0.1)", waits]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, timeout=200, resources={"metadata": {"path": str(tmp_path)}}).execute()
    (output,) = notebook.cells[1].outputs
    assert output.output_type == "display_data" and "micro-batch" in output.data["text/plain"]
    (source,) = re.findall(r'<iframe [^>]*srcdoc="([^"]*)"', output.data["text/html"])
    view = shown(unescape(source))
    assert (view.title, view.state) == ("Beats", "ended") and len(view.series.batch) >= 3
    assert json.dumps(notebook).count("srcdoc") == 1, "one output, whatever is refreshed"
    assert "refreshed in place" in notebook.cells[2].outputs[0].text
