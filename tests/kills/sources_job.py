"""Runs the query of a campaign of sources, in a process that the campaign may kill::

    python -m tests.kills.sources_job FOLDER

Starts its query again as often as the death of a process ends it, and writes what the error was into FOLDER/failures.
Ends when the rows that FOLDER/fed promises are in the sink, or when nothing happens any more.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
from py4j.protocol import Py4JJavaError
from pyspark.errors import StreamingQueryException

from pystorm_source import read_stream
from tests.kills import source_topologies
from tests.kills.committed import committed
from tests.kills.session import of_job

STUCK_SECONDS = 100.0
"""Without a row, as long as some are missing: on a busy machine, a query takes half of this to begin."""


def emitted(folder: Path) -> list[tuple[int, str]]:
    """Ids and texts that Spark's sink has committed."""
    columns = [ds.dataset(path).to_table(columns=["id", "text"]).to_pydict() for path in committed(folder / "out")]
    return [row for each in columns for row in zip(each["id"], each["text"], strict=True)]


class Job:
    def __init__(self, folder: Path):
        self.folder = folder
        self.told = json.loads((folder / "campaign.json").read_text())
        self.spark = of_job(folder)
        self.begun = time.time()

    def run(self) -> None:
        while True:
            try:
                query = self.start()
                while not query.awaitTermination(0.5):
                    if self.is_over():
                        query.stop()
                        return
            except (StreamingQueryException, Py4JJavaError) as error:
                with (self.folder / "failures").open("a") as file:
                    file.write(json.dumps(str(error)) + "\n")

    def start(self) -> Any:
        topology = getattr(source_topologies, self.told["topology"])
        config = {"effects": str(self.folder / "effects")}
        rows = read_stream(self.spark, topology, config=config, options=self.told["options"])
        writer = rows.writeStream.format("parquet").option("checkpointLocation", str(self.folder / "checkpoint"))
        return writer.start(str(self.folder / "out"))

    def is_over(self) -> bool:
        fed = self.folder / "fed"
        if not fed.exists():
            return False
        last = max((path.stat().st_mtime for path in (self.folder / "effects").iterdir()), default=0.0)
        quiet = time.time() - max(last, fed.stat().st_mtime, self.begun)
        if quiet < self.told["quiet"]:
            return False
        return quiet > STUCK_SECONDS or len({n for n, _ in emitted(self.folder)}) >= int(fed.read_text())


if __name__ == "__main__":
    job = Job(Path(sys.argv[1]))
    job.run()
    job.spark.stop()
