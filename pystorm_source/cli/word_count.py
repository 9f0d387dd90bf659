"""The topology of the demo: word count in streamparse's shape, over a directory of growing text files."""

import re
from typing import ClassVar

from pystorm_source.api import Bolt, Grouping, Topology, Tuple
from pystorm_source.spouts import FilesSpout

WORD = re.compile(r"[a-z]+")


class SplitBolt(Bolt):
    """A line becomes its words, in lower case."""

    outputs: ClassVar = ["word string"]

    def process(self, tup: Tuple) -> None:
        for word in WORD.findall(tup.values.line.lower()):
            self.emit([word])


class CountBolt(Bolt):
    """A word becomes an increment.

    Increments, not running totals: a task may be restarted and a word may come from several tasks, so the sum over
    the whole stream is Spark's to keep, in its checkpointed state.
    """

    outputs: ClassVar = ["word string", "n long"]

    def process(self, tup: Tuple) -> None:
        self.emit([tup.values.word, 1])


class WordCount(Topology):
    """``load(path)`` names the directory."""

    lines = FilesSpout.spec()
    words = SplitBolt.spec(inputs=[lines])
    counts = CountBolt.spec(
        inputs={words: Grouping.fields("word")}, par=2, config={"topology.lint.off": "grouping-per-task"}
    )
