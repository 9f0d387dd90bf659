"""What Spark prints of an error that ``explain`` tells: events as log4j makes them, and the layout of the console."""

import pytest

from pystorm_source.query.short_log import short_log

pytestmark = pytest.mark.spark40

QUERY = "7f0e9a52-6f1b-4c3e-9a51-0c9d4f3e2b10"
OURS = (
    "[PYTHON_EXCEPTION] An exception was thrown from the Python worker: pystorm_source.errors.TupleFailed: "
    "[PYSTORM_TUPLE_FAILED] \ncomponent 'prices', task 2: process() raised ValueError: no price\n  input:  ('one',)"
)
THEIRS = "[PYTHON_EXCEPTION] An exception was thrown from the Python worker: ValueError: [PYSTORM_TUPLE_FAILED] of old"


class Console:
    """The layout of Spark's console appender as it is now."""

    def __init__(self, spark):
        self.gateway = spark.sparkContext._gateway
        self._jvm = self.gateway.jvm

    @property
    def appender(self):
        context = self._jvm.org.apache.logging.log4j.LogManager.getContext(False)
        appenders = context.getConfiguration().getRootLogger().getAppenders().values()
        (console,) = [each for each in appenders if each.getClass().getSimpleName() == "ConsoleAppender"]
        return console

    def shows(self, logger, message, error=None):
        jvm = self._jvm
        event = jvm.org.apache.logging.log4j.core.impl.Log4jLogEvent.newBuilder()
        event = event.setLoggerName(f"org.apache.spark.{logger}").setLevel(jvm.org.apache.logging.log4j.Level.ERROR)
        event = event.setMessage(jvm.org.apache.logging.log4j.message.SimpleMessage(message))
        if error is not None:
            event = event.setThrown(jvm.org.apache.spark.SparkException(error))
        return self.appender.getLayout().toSerializable(event.build())


@pytest.fixture
def console(spark):
    return Console(spark)


def test_an_error_of_ours_is_a_line_and_repetitions_are_none(console):
    lost = f"Lost task 0.0 in stage 0.0 (TID 0) (host driver): org.apache.spark.api.python.X: {OURS}\n\tat a.b\n"
    with short_log(console.gateway, [QUERY]):
        line = console.shows("scheduler.TaskSetManager", lost)
        assert line.count("\n") == 1
        assert "TaskSetManager: Lost task 0.0 in stage 0.0 (TID 0) (host driver): [PYSTORM_TUPLE_FAILED] " in line
        assert line.endswith("component 'prices', task 2: process() raised ValueError: no price\n")
        killed = f"Lost task 1.0 in stage 0.0 (TID 1) (host driver): TaskKilled (Stage cancelled: {OURS}\n\tat a.b\n)"
        assert console.shows("scheduler.TaskSetManager", killed).count("\n") == 1
        assert console.shows("util.Utils", "Aborting task", OURS) == ""
        assert console.shows("executor.Executor", "Exception in task 0.0 in stage 0.0 (TID 0)", OURS) == ""
        ended = f"Query prices [id = {QUERY}, runId = x] terminated with error"
        assert console.shows("runtime.MicroBatchExecution", ended, OURS) == ""
        other = console.shows("runtime.MicroBatchExecution", ended.replace(QUERY, "another"), OURS)
        assert other.count("\n") == 1 and "[id = another, runId = x] terminated with error: [PYSTORM_TUPLE" in other


def test_what_others_raise_is_shown_as_ever(console):
    cases = [
        ("executor.Executor", "Exception in task 0.0 in stage 0.0 (TID 0)", THEIRS),
        ("util.Utils", "Aborting task", "disk full\n" * 3000),
        ("runtime.MicroBatchExecution", f"Query [id = {QUERY}, runId = x] terminated with error", "no such table"),
        ("scheduler.TaskSetManager", "Task 0 in stage 0.0 failed 1 times; aborting job", None),
    ]
    before = [console.shows(*case) for case in cases]
    with short_log(console.gateway, [QUERY]):
        during = [console.shows(*case) for case in cases]
    assert [_without_time(text) for text in during] == [_without_time(text) for text in before]


def _without_time(text):
    return text.split(" ERROR ", 1)[1]


def test_afterwards_the_console_is_as_before(console):
    name, layout = console.appender.getName(), str(console.appender.getLayout())
    with short_log(console.gateway, [QUERY]):
        assert str(console.appender.getLayout()) != layout
    assert (console.appender.getName(), str(console.appender.getLayout())) == (name, layout)


def test_without_a_jvm_nothing_is_done():
    with short_log(None, [QUERY]):
        pass
