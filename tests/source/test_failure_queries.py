"""What Spark shows when a component raises: one block, first, with the user's file and line, and no frame of ours."""

import re

import pytest

from pystorm_source.errors.failure_block import FailureBlock
from tests.source import failing

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]

RANGE = "in partition '0' [0, 3) of spout 'lines'"
RAISED = 'in unreadable: raise RuntimeError(f"no price: {text}") from error'
CASES = {
    # topology: (what, place, the end of the line, frames)
    "Tuples": ("component 'bolt', task 2: process()", f"tuple ('two',) of lines.default; offset 1; {RANGE}", RAISED, 3),
    "Threads": (
        "component 'bolt', task 2: process()",
        f"tuple ('two',) of lines.default; offset 1; {RANGE}",
        RAISED,
        3,
    ),
    "Groups": (
        *("component 'bolt', task 2: process_batch()", f"tuple ('two',) of lines.default; offset 1; {RANGE}"),
        *(RAISED, 3),
    ),
    "Waits": ("component 'bolt', task 2: process()", f"tuple ('two',) of lines.default; offset 1; {RANGE}", RAISED, 3),
    "Unprepared": ("component 'bolt', task 2: initialize()", RANGE, RAISED, 3),
    "Texts": (
        *("component 'bolt', task 2: process()", f"tuple ('1',) of lines.default; offset 0; {RANGE}"),
        *("in process: self.emit([tup.values.text])", 1),
    ),
    "Exits": (
        *("component 'bolt', task 2: process()", f"tuple ('1',) of lines.default; offset 0; {RANGE}"),
        *('in process: raise SystemExit("enough")', 1),
    ),
    "Opens": ("component 'spout', task 1: open()", "in partition 'p' [0, 5) of spout 'spout'", RAISED, 3),
    "Nexts": (
        *("component 'spout', task 1: next_tuple()", "last offset 1; in partition 'p' [0, 5) of spout 'spout'"),
        *(RAISED, 3),
    ),
    "Heads": ("component 'spout', on the driver: latest()", "none", RAISED, 3),
}


def text_of(error):
    return str(error.value)


def streamed(spark, name):
    frame = spark.readStream.format("pystorm").option("topology", f"{failing.__name__}:{name}").load()
    query = frame.writeStream.format("noop").trigger(availableNow=True).start()
    with pytest.raises(Exception) as raised:
        query.awaitTermination(90)
    return text_of(raised)


def read(spark, name):
    with pytest.raises(Exception) as raised:
        spark.read.format("pystorm").option("topology", f"{failing.__name__}:{name}").load().collect()
    return text_of(raised)


READ = ["Tuples", "Opens", "Heads"]
"""A failure of a bolt, of a spout, of the driver: the block is made in the task, and a batch read has but another
header of Spark's."""


@pytest.mark.campaign
@pytest.mark.parametrize(("action", "name"), [(streamed, name) for name in CASES] + [(read, name) for name in READ])
def test_the_text_begins_with_the_block(spark, action, name):
    what, place, line, frames = CASES[name]
    text = action(spark, name)
    lines = text.splitlines()
    (first,) = [number for number, each in enumerate(lines) if each.startswith("component '")]
    assert first <= 2, "Spark's own header, and nothing of ours"
    block = FailureBlock.found_in(text)
    assert block.what.startswith(f"{what} raised ")
    assert block.place == place
    assert re.fullmatch(rf'File "[^"]*/tests/source/failing\.py", line \d+, {re.escape(line)}', block.line)
    assert block.remedy.startswith("correct the component")
    files = re.findall(r'^  File "([^"]*)"', text, re.MULTILINE)
    assert len(files) == frames
    assert all(file.endswith("tests/source/failing.py") for file in files)
    end = (
        next(number for number, each in enumerate(lines) if each.startswith(" SQLSTATE"))
        if " SQLSTATE" in text
        else None
    )
    assert len(lines[first:end]) <= 24


@pytest.mark.campaign
@pytest.mark.every_spark
def test_a_raising_bolt_is_told_on_every_spark(spark):
    text = streamed(spark, "Tuples")
    block = FailureBlock.found_in(text)
    assert block.what == "component 'bolt', task 2: process() raised RuntimeError: no price: two"
    assert block.line.endswith(RAISED)
