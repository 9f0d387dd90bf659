"""A streaming query without Spark: the driver's reader, called as its runner calls it, and tasks in this process.

Imported by Spark's Python processes, too, for the spout.
"""

import json
from collections.abc import Mapping
from itertools import repeat
from pathlib import Path
from typing import Any

from benchmarks.harness.components import PairIdBolt, PairSpout
from pystorm_source.api import Grouping, Snapshot, Topology
from pystorm_source.channel.reports.receiver import ReportReceiver
from pystorm_source.channel.reports.server import ReportServer
from pystorm_source.source.driver.stream_reader import PystormStreamReader
from pystorm_source.source.request import ReadRequest
from pystorm_source.source.task.range_partition import RangePartition, ranges_of
from pystorm_source.source.task.read_range import TaskReader
from testbed.uncontrolled import UNCONTROLLED


class GrowingSpout(PairSpout):
    """``benchmark.partitions``, which all grow by ``benchmark.step`` rows with each snapshot."""

    poll_seconds = 0.0

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        self.names = [f"part-{number:07d}" for number in range(conf["benchmark.partitions"])]
        self.step = conf["benchmark.step"]

    def snapshot(self, known: Mapping[str, int], state: Mapping[str, int | str]) -> Snapshot:
        head = max(known.values(), default=0) + self.step
        return Snapshot(dict(zip(self.names, repeat((0, head)), strict=False)))


class Growing(Topology):
    """GrowingSpout → a bolt that passes rows on → output."""

    spout = GrowingSpout.spec()
    last = PairIdBolt.spec(inputs={spout: Grouping.SHUFFLE})


class ReportsHere(ReportServer):
    """Takes reports of this thread as well."""

    def arrive(self, body: bytes) -> None:
        self._arrived(body)


class Query:
    """One run of a query whose micro-batches read all there is. Tasks report, and the run is recorded in ``folder``.

    Use as a context.
    """

    def __init__(self, folder: Path, partitions: int, step: int):
        conf = {"benchmark.partitions": partitions, "benchmark.step": step}
        options = {"progress.path": str(folder), "config": json.dumps(conf), **UNCONTROLLED}
        topology = f"{Growing.__module__}:{Growing.__name__}"
        given = {name.lower(): str(value) for name, value in {"topology": topology, **options}.items()}
        request = ReadRequest.of(given)
        output = request.rows.output(request.rows.schema())
        self.reader = PystormStreamReader(request, output, controlled=True, recorded=True)
        self.reader._telemetry.receiver = ReportReceiver(
            request.options, here=True, driver_command=["java", "--master", "local[2]"], make=self._made
        )
        self.tasks = TaskReader(request, output)
        self.position = self.reader.initialOffset()
        self.server: ReportsHere | None = None

    def _made(self, host: str, port: int, token: bytes) -> ReportsHere:
        self.server = ReportsHere(host, port, token, on_report=self.reader._telemetry.reported)
        return self.server

    def __enter__(self) -> "Query":
        return self

    def __exit__(self, *raised: object) -> None:
        self.reader.stop()

    def plan(self) -> list[RangePartition]:
        """The ranges of the next micro-batch; the one before is committed."""
        start = self.position
        end = self.reader.latestOffset(start, self.reader.getDefaultReadLimit())
        self.reader.reportLatestOffset()
        planned = self.reader.partitions(start, end)
        self.reader.commit(start)
        self.position = end
        return [each for task in planned for each in ranges_of(task)]

    def read(self, ranges: list[RangePartition]) -> int:
        """The tasks' rows."""
        return sum(batch.num_rows for each in ranges for batch in self.tasks.read(each))
