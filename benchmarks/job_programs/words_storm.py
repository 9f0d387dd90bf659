"""Text files → a splitting and a counting bolt, each a process of pystorm behind Storm's pipe → Parquet at the end."""

import os
import subprocess
import sys
from collections import Counter
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pystorm import Bolt, ReliableSpout

JAVA_FLAGS = ("-XX:+UseParallelGC", "-Xms2g", "-Xmx2g")
LINES_AT_ONCE = 100
END = "end"


class Lines(ReliableSpout):
    def initialize(self, storm_conf, context):
        self.done = Path(storm_conf["words.done"])
        paths = Path(storm_conf["words.text"]).iterdir()
        self.lines = enumerate(line for path in paths for line in path.open())
        self.ended = False

    def next_tuple(self):
        for number, line in islice(self.lines, LINES_AT_ONCE):
            self.emit([line], tup_id=str(number))
        if not self.unacked_tuples and not self.ended:
            self.ended = True
            self.emit([None], tup_id=END, stream=END)

    def ack(self, tup_id):
        super().ack(tup_id)
        if tup_id == END:
            self.done.touch()


class Split(Bolt):
    def process(self, tup):
        for word in tup.values[0].split():
            self.emit([word])


class Count(Bolt):
    def initialize(self, storm_conf, context):
        self.out = storm_conf["words.out"]
        self.counts = Counter()

    def process(self, tup):
        if tup.stream == END:
            table = pa.table({"word": list(self.counts), "n": list(self.counts.values())})
            pq.write_table(table, Path(self.out, f"{self.task_id}.parquet"))
        else:
            self.counts[tup.values[0]] += 1


def run(text, classes, out, work):
    Path(out).mkdir()
    java = [f"{os.environ['JAVA_HOME']}/bin/java", *JAVA_FLAGS, f"-Djava.io.tmpdir={work}", "-cp", classes]
    program = ["StormWords", sys.executable, __name__, text, out, f"{work}/done"]
    # Storm logs to its standard output.
    subprocess.run([*java, *program], stdout=sys.stderr, check=True)


if __name__ == "__main__":
    {"Lines": Lines, "Split": Split, "Count": Count}[sys.argv[1]]().run()
