"""The topology of the demo: word count in streamparse's shape, over a directory of growing text files."""

import os
import re
import time
from pathlib import Path
from typing import Any, ClassVar

from pystorm_source.api import Bolt, Grouping, Topology, Tuple
from pystorm_source.spouts import FilesSpout

WORD = re.compile(r"[a-z]+")
SERVICE = "demo.service"
LOOK_SECONDS = 0.1


class LookUpBolt(Bolt):
    """Waits for a service with each line, like a bolt that queries a database.

    The configuration's ``demo.service`` names a file with the service's seconds per line. The bolt rereads it
    regularly, and touches a file ``worker-PID`` beside it, whose time says when that process was last at work.
    """

    outputs: ClassVar = ["line string"]

    def initialize(self, conf: dict[str, Any], context: Any) -> None:
        service = conf.get(SERVICE)
        self.service = Path(service) if service else None
        self.seconds = 0.0
        self.looked = -LOOK_SECONDS

    def process(self, tup: Tuple) -> None:
        now = time.monotonic()
        if self.service and now - self.looked >= LOOK_SECONDS:
            self.looked = now
            self.seconds = float(self.service.read_text())
            self.service.with_name(f"worker-{os.getpid()}").touch()
        if self.seconds:
            time.sleep(self.seconds)
        self.emit([tup.values.line])


class SplitBolt(Bolt):
    """Splits a line into its words, in lower case."""

    outputs: ClassVar = ["word string"]

    def process(self, tup: Tuple) -> None:
        for word in WORD.findall(tup.values.line.lower()):
            self.emit([word])


class CountBolt(Bolt):
    """Turns a word into an increment.

    Increments, not running totals: a task may be restarted and a word may come from several tasks, so Spark keeps
    the sum over the stream in its checkpointed state.
    """

    outputs: ClassVar = ["word string", "n long"]

    def process(self, tup: Tuple) -> None:
        self.emit([tup.values.word, 1])


class WordCount(Topology):
    """``load(path)`` names the directory."""

    lines = FilesSpout.spec()
    known = LookUpBolt.spec(inputs=[lines])
    words = SplitBolt.spec(inputs=[known])
    counts = CountBolt.spec(
        inputs={words: Grouping.fields("word")}, par=2, config={"topology.lint.off": "grouping-per-task"}
    )
