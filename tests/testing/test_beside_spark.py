"""A topology gives the same rows in the test kit and through Spark, if they do not depend on how ranges are cut."""

from collections import Counter
from datetime import date

import pytest

from pystorm_source import Bolt, Grouping, Stream, Topology, read
from pystorm_source.spouts import FilesSpout, MemorySpout
from pystorm_source.testing import run_topology
from tests.testing.topologies import Numbers, Split

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]


class Marked(Bolt):
    outputs = ["word string", "length long", Stream(["word string"], name="long")]

    def process(self, tup):
        word = tup.values[0]
        if len(word) > 4:
            self.emit([word], stream="long", anchors=[])
        self.emit((word, len(word)))


class Words(Topology):
    lines = MemorySpout.spec(
        fields=["line string"], rows=[["the cow jumped"], [""], ["over the moon"], ["é 日本 x"]], partitions=3
    )
    words = Split.spec(inputs={lines: Grouping.SHUFFLE}, par=3)
    marked = Marked.spec(inputs={words: Grouping.fields("word")}, par=2)
    all = Marked.spec(inputs={words: Grouping.ALL}, par=2)


class Days(MemorySpout):
    outputs = ["day date", "values array<int>", "names map<string,double>"]
    rows = [(date(2024, 2, 29), [1, 2], {"a": 0.5}), (None, [], {})]


class Values(Topology):
    days = Days.spec()


class TwoPartitions(Topology):
    numbers = Numbers.spec()


class Files(Topology):
    lines = FilesSpout.spec()
    words = Split.spec(inputs=[lines])


@pytest.mark.parametrize(
    ("topology", "component", "stream"),
    [
        (Words, "marked", "default"),
        (Words, "marked", "long"),
        (Words, "all", "default"),
        (Values, "days", "default"),
        (TwoPartitions, "numbers", "default"),
    ],
)
def test_rows_are_the_same(spark, topology, component, stream):
    rows = read(spark, topology, stream=f"{component}.{stream}").collect()
    here = run_topology(topology).rows(component, stream)
    assert here and Counter(map(repr, here)) == Counter(repr(tuple(row)) for row in rows)


def test_config_reaches_both_alike(spark, tmp_path):
    (tmp_path / "a.log").write_text("one two\nthree\nno newline yet")
    rows = read(spark, Files, path=str(tmp_path)).collect()
    here = run_topology(Files, config={"path": str(tmp_path)}).rows("words")
    assert sorted(here) == sorted(map(tuple, rows)) == [("one",), ("three",), ("two",)]
