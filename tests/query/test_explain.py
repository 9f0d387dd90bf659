"""The lines of a failure that matter, from whatever Spark gives."""

from types import SimpleNamespace

import pytest
from pyspark.sql.streaming.listener import StreamingQueryListener

from pystorm_source import await_query, explain
from pystorm_source.errors import OptionError
from pystorm_source.query.explain import Explanation
from pystorm_source.query.standing import standing
from tests.source import failing

WHAT = "[PYSTORM_TUPLE_FAILED] component 'bolt', task 2: process() raised RuntimeError: no price: two"
JAVA = "\n\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1)\nCaused by: more"


def loaded(reader, **options):
    return reader.format("pystorm").options(topology=f"{failing.__name__}:Tuples", **options).load()


class Ends(StreamingQueryListener):
    def __init__(self):
        self.events = []

    def onQueryStarted(self, event):
        pass

    def onQueryProgress(self, event):
        pass

    def onQueryIdle(self, event):
        pass

    def onQueryTerminated(self, event):
        self.events.append(event)


@pytest.mark.parametrize("said", [" SQLSTATE: XXKST (no cause message)", "null"])
def test_a_source_that_was_killed_on_the_driver(said):
    """As Spark tells it: the process at the other end of its socket is gone, which has no message."""
    text = f"[STREAM_FAILED] Query [id = 52, runId = 83] terminated with exception: {said}\n=== Streaming Query ===\n"
    assert "goes on at its checkpoint" in explain(text)


@pytest.mark.spark
@pytest.mark.every_spark
@pytest.mark.timeout(180)
def test_a_query_its_exception_and_the_event_of_its_end_say_the_same(spark):
    ends = Ends()
    spark.streams.addListener(ends)
    try:
        query = loaded(spark.readStream).writeStream.format("noop").trigger(availableNow=True).start()
        with pytest.raises(Exception) as raised:
            query.awaitTermination()
        text = explain(query)
        what, place, line, remedy = text.splitlines()
        assert what == WHAT
        assert place == "  input:  tuple ('two',) of lines.default; offset 1; in partition '0' [0, 3) of spout 'lines'"
        assert 'failing.py", line ' in line
        assert line.endswith(', in unreadable: raise RuntimeError(f"no price: {text}") from error')
        assert remedy.startswith("  remedy: correct the component and restart the query")
        assert repr(text) == str(text)
        assert explain(raised.value) == explain(str(raised.value)) == text
        while not ends.events:
            spark.streams.awaitAnyTermination(1)
        assert explain(ends.events[0]) == text
    finally:
        spark.streams.removeListener(ends)
        spark.streams.resetTerminated()


@pytest.mark.spark
@pytest.mark.timeout(180)
def test_a_batch_read_wrong_options_and_what_is_not_ours(spark):
    with pytest.raises(Exception) as raised:
        loaded(spark.read).collect()
    assert explain(raised.value).splitlines()[0] == WHAT
    with pytest.raises(Exception) as raised:
        loaded(spark.read, maxOffsetsPerTrigger="many")
    text = explain(raised.value)
    assert text.startswith("[PYSTORM_INVALID_OPTION] option 'maxOffsetsPerTrigger'") and text.endswith("'many'")
    assert "\n" not in text
    with pytest.raises(Exception) as raised:
        spark.sql("select * from no_such_table")
    text = explain(raised.value)
    assert text.startswith("no error of pystorm-source is in it. It says: [TABLE_OR_VIEW_NOT_FOUND]")
    assert "\n" not in text and len(text) < 400
    with pytest.raises(Exception) as raised:
        spark.readStream.format("pystrom").load()
    text = explain(raised.value)
    assert "It says: [DATA_SOURCE_NOT_FOUND]" in text and "pystrom" in text
    assert "\n" not in text


@pytest.mark.spark
@pytest.mark.timeout(180)
def test_a_query_that_has_not_failed(spark, world, tmp_path, capsys):
    world.put(a=5)
    frame = spark.readStream.format("pystorm").options(**world.options()).load()
    writer = frame.writeStream.format("noop").queryName("healthy").option("checkpointLocation", str(tmp_path / "c"))
    query = writer.start()
    try:
        query.processAllAvailable()
        assert explain(query) == (
            "query 'healthy' runs; last micro-batch 0, 5 rows; read up to numbers: 'a' 5; backlog 0 offsets"
        )
        other = writer.queryName("other").start()  # Spark stops the first one, which has not failed
        try:
            assert query.exception() is None and other.isActive
            assert explain(query).startswith("query 'healthy' was stopped by Spark, for another query was started with")
            await_query(query)
            said = capsys.readouterr().err
            assert "query 'healthy' was stopped by Spark" in said and "checkpointLocation: give each" in said
        finally:
            other.stop()
    finally:
        query.stop()
    assert explain(query).startswith(
        "query 'healthy' was stopped, or has read all; it has not failed; last micro-batch"
    )


def test_errors_of_the_package_are_shown_as_they_are():
    error = OptionError("option 'x' is unknown: leave it out. Given: 1")
    assert explain(error) == str(error)


@pytest.mark.parametrize("end", [JAVA, " SQLSTATE: 38000", "\nTraceback (most recent call last):\n  File", ""])
def test_an_error_in_a_text_ends_where_sparks_words_begin(end):
    text = f"[PYTHON_EXCEPTION] thrown: pystorm_source.errors.OptionError: [PYSTORM_INVALID_OPTION] one\ntwo{end}"
    assert explain(text) == "[PYSTORM_INVALID_OPTION] one\ntwo"


def test_of_a_failure_of_python_that_is_not_ours_the_last_line_is_told():
    text = "[FOREACH_BATCH_USER_FUNCTION_ERROR] failed: Traceback (most recent call last):\n  File x\nKeyError: 'n'\n"
    assert explain(text) == "no error of pystorm-source is in it. It says: KeyError: 'n'"


def test_a_python_that_did_not_answer_is_told_with_a_remedy():
    said, remedy = explain(f"Job aborted: Python worker failed to connect back.{JAVA}").splitlines()
    assert said == "no error of pystorm-source is in it. It says: Job aborted: Python worker failed to connect back."
    assert remedy.startswith("  remedy: ") and "start the job again" in remedy and "`pystorm-source check`" in remedy


@pytest.mark.parametrize("condition", ["CONCURRENT_STREAM_LOG_UPDATE", "CONCURRENT_QUERY"])
def test_two_queries_with_one_checkpoint_are_told_with_a_remedy(condition):
    said, remedy = explain(f"[{condition}] Multiple streaming jobs detected for 0.{JAVA}").splitlines()
    assert said.endswith(f"It says: [{condition}] Multiple streaming jobs detected for 0.")
    assert remedy.startswith("  remedy: another query runs with the same checkpointLocation") and "stop it" in remedy


@pytest.mark.parametrize("given", [5, None, object, ["text"]])
def test_what_is_no_failure_is_refused(given):
    with pytest.raises(TypeError, match="explain takes a streaming query.*Given: ") as refused:
        explain(given)
    assert refused.value.code == "PYSTORM_INVALID_ARGUMENT"
    assert ("give the query" in str(refused.value)) is (given is None)


def test_an_event_without_an_exception():
    event = SimpleNamespace(exception=None)
    assert explain(event) == Explanation("the query was stopped; it has not failed")


def test_a_spout_without_offsets_has_no_backlog_instead_of_none():
    source = {"endOffset": '{"offsets": {"tickets": {"north": 400000}}}', "latestOffset": '{"backlog": 0}'}
    progress = {"batchId": 3, "numInputRows": 100, "sources": [source]}
    text = standing(SimpleNamespace(recentProgress=[progress]))
    assert text.endswith("read up to tickets: 'north' 400000; no backlog known: spouts without offsets")
