"""apply() whose dead letters go into files, on a real Spark."""

import json
import os

import pytest

from pystorm_source import apply, read
from pystorm_source.errors import OptionError
from pystorm_source.source.task.dead_letter_file import move_all
from pystorm_source.spouts import DeadLetterSpout, MemorySpout
from tests.operator import topologies
from tests.operator.tasks import batches, function_of, rows_of, schedulers

PATH = "topology.dead.letter.path"


def letters_in(folder):
    return [json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]


class BreaksOnce(topologies.Hopeless):
    """Row 5 ends the process that has it, the first time."""

    def initialize(self, conf, context):
        self.mark = conf["mark"]

    def process(self, tup):
        if tup.values.id == 5 and not os.path.exists(self.mark):
            open(self.mark, "w").close()
            os._exit(1)
        super().process(tup)


class Broken(topologies.Topology):
    config = {"topology.max.spout.retries": 1}
    rows = topologies.Input.spec(["id long"])
    hopeless = BreaksOnce.spec(inputs=[rows])


class Mended(topologies.Topology):
    rows = DeadLetterSpout.spec(fields=["id long"], component="hopeless", about=["attempts"])
    double = topologies.Double.spec(inputs=[rows])


class Source(topologies.Topology):
    config = {"topology.max.spout.retries": 1}
    rows = MemorySpout.spec(fields=["id long"], rows=[[1], [3], [5]])
    hopeless = topologies.Hopeless.spec(inputs=[rows])


@schedulers
def test_a_task_leaves_one_file_and_rows_without_dead_letters(tmp_path, scheduler):
    function = function_of(topologies.DeadLetters, "id: long", **{PATH: str(tmp_path), "topology.scheduler": scheduler})
    assert rows_of(function(batches(1, 10))) == [(number,) for number in range(10) if number != 3]
    (letter,) = letters_in(tmp_path)
    assert (letter["component"], letter["values"], letter["attempts"], letter["offset"]) == ("hopeless", "[3]", 2, 3)
    assert len(list(tmp_path.iterdir())) == 1
    rows_of(function(batches(1, 3)))
    assert len(list(tmp_path.iterdir())) == 1, "a task without dead letters leaves none"


def test_a_sink_of_the_same_query_and_folder_lets_them_be(tmp_path):
    """Its commit removes what an earlier one of the same micro-batch has left."""
    rows_of(function_of(topologies.DeadLetters, "id: long", **{PATH: str(tmp_path)})(batches(1, 10)))
    (path,) = tmp_path.iterdir()
    stem = path.name.removeprefix("rows-").partition("part-")[0]
    (tmp_path / f"{stem}part-00007.jsonl").write_text("")
    move_all(str(tmp_path), stem, [])
    assert list(tmp_path.iterdir()) == [path]


@schedulers
def test_a_task_that_is_broken_off_leaves_none(tmp_path, scheduler):
    function = function_of(
        topologies.DeadLetters,
        "id: long",
        **{PATH: str(tmp_path), "topology.scheduler": scheduler, "output.batch.rows": 100},
    )
    rows = function(batches(100))
    next(rows)
    rows.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({PATH: "/x", "topology.dead.letter": "drop"}, "keep one"),
        ({PATH: "s3://x"}, "without scheme"),
        ({"topology.dead.letter.pth": "/x"}, "did you mean 'topology.dead.letter.path'"),
    ],
)
def test_what_is_refused(options, says):
    with pytest.raises(OptionError, match=says):
        function_of(topologies.DeadLetters, "id: long", **options)


@pytest.mark.spark
def test_a_killed_task_leaves_no_letters_of_its_first_attempt(spark, tmp_path):
    """And a spout reads those that there are."""
    letters = tmp_path / "letters"
    frame = apply(
        spark.range(0, 10, 1, 1),
        Broken,
        options={PATH: str(letters), "config": json.dumps({"mark": str(tmp_path / "mark")})},
    )
    assert sorted(row.id for row in frame.collect()) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert (tmp_path / "mark").exists()
    assert [letter["values"] for letter in letters_in(letters)] == ["[3]"]
    assert [tuple(row) for row in read(spark, Mended, path=str(letters)).collect()] == [(3, 6)]


@pytest.mark.spark
def test_a_source_leaves_the_same_files(spark, tmp_path):
    rows = read(spark, Source, options={PATH: str(tmp_path)}).collect()
    assert sorted(row.id for row in rows) == [1, 5]
    (letter,) = letters_in(tmp_path)
    assert (letter["component"], letter["values"], letter["attempts"]) == ("hopeless", "[3]", 2)
