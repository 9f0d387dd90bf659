"""apply() whose dead letters go into files, on a real Spark."""

import grp
import json
import os
import resource
from contextlib import contextmanager

import pytest

from pystorm_source import apply, read
from pystorm_source.errors import OptionError
from pystorm_source.spark.dead_letter_file import move_all
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


class ManyHopeless(topologies.Hopeless):
    """All rows fail, with long reasons."""

    def process(self, tup):
        raise ValueError("x" * 500)


class Full(topologies.Topology):
    config = {"topology.max.spout.retries": 0}
    rows = topologies.Input.spec(["id long"])
    hopeless = ManyHopeless.spec(inputs=[rows])


@contextmanager
def small_files(size):
    """As on a full disk: no file of this process grows beyond that."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("rows", [3, 300])
def test_a_full_disk_names_option_folder_and_component_and_leaves_no_file(tmp_path, rows):
    """It is full when the file is closed, or before."""
    function = function_of(Full, "id: long", **{PATH: str(tmp_path / "letters")})
    with (
        small_files(1_000),
        pytest.raises(Exception, match=r"topology\.dead\.letter\.path.*component 'hopeless'") as said,
    ):
        rows_of(function(batches(1, rows)))
    assert str(tmp_path / "letters") in str(said.value)
    assert "PYSTORM_NOT_WRITABLE" in str(said.value)
    assert list((tmp_path / "letters").iterdir()) == []


def test_letters_are_for_their_user_alone_or_for_a_group(tmp_path):
    function = function_of(topologies.DeadLetters, "id: long", **{PATH: str(tmp_path / "a/letters")})
    rows_of(function(batches(1, 10)))
    (path,) = (tmp_path / "a/letters").iterdir()
    modes = [each.stat().st_mode & 0o7777 for each in (tmp_path / "a", path.parent, path)]
    assert modes == [0o700, 0o700, 0o600]
    group = os.getgroups()[-1] if os.getgroups() else os.getgid()
    options = {PATH: str(tmp_path / "b"), "topology.dead.letter.group": grp.getgrgid(group).gr_name}
    rows_of(function_of(topologies.DeadLetters, "id: long", **options)(batches(1, 10)))
    (path,) = (tmp_path / "b").iterdir()
    assert [each.stat().st_mode & 0o7777 for each in (path.parent, path)] == [0o2750, 0o640]
    assert {each.stat().st_gid for each in (path.parent, path)} == {group}
    (tmp_path / "theirs").mkdir(mode=0o755)
    rows_of(function_of(topologies.DeadLetters, "id: long", **{PATH: str(tmp_path / "theirs")})(batches(1, 10)))
    assert (tmp_path / "theirs").stat().st_mode & 0o7777 == 0o755, "a folder that is there stays as it is"
    options["topology.dead.letter.group"] = "no-such-group"
    with pytest.raises(Exception, match="topology.dead.letter.group.*'no-such-group'"):
        rows_of(function_of(topologies.DeadLetters, "id: long", **options)(batches(1, 10)))
    assert list((tmp_path / "b").iterdir()) == [path]
