"""The query of a campaign of uses in a process of its own, whose driver may be killed::

    python -m tests.effects.uses_job FOLDER

Reads a file below FOLDER/in in each micro-batch. Inside of foreachBatch a sink and an operator run twice each, over the
even and over the odd rows. Ends when all are read.
"""

import json
import os
import sys
import time
from pathlib import Path

from pystorm_source import Bolt, Input, Topology, apply
from tests.kills.session import of_job

USES = {"even": 0, "odd": 1}


class Note(Bolt):
    """Its effect: a line with key and id, in a file for each process. Every fifth row fails."""

    exit_on_exception = False

    def initialize(self, conf, context):
        self.folder, self.door = Path(conf["effects"]), conf["door"]

    def process(self, tup):
        time.sleep(0.005)
        if tup.values.id % 5 == 3:
            raise ValueError("three")
        with (self.folder / f"{os.getpid()}").open("a") as file:
            file.write(json.dumps([self.door, self.idempotency_key(tup), tup.values.id]) + "\n")
        self.done(tup)

    def done(self, tup):
        """A sink emits nothing."""


class Noted(Note):
    outputs = ["id long"]

    def done(self, tup):
        self.emit([tup.values.id])


class Sink(Topology):
    config = {"topology.max.spout.retries": 1}
    rows = Input.spec(["id long"])
    note = Note.spec(inputs=[rows])


class Rows(Topology):
    config = {"topology.max.spout.retries": 1}
    rows = Input.spec(["id long"])
    note = Noted.spec(inputs=[rows])


def main(folder: Path) -> None:
    spark = of_job(folder)

    def write(frame, number):
        for use, rest in USES.items():
            some = frame.where(f"id % 2 = {rest}")
            writer = some.write.format("pystorm").option("topology", f"{__spec__.name}:Sink").option("use", use)
            writer = writer.option("config", json.dumps({"effects": str(folder / "effects"), "door": f"sink-{use}"}))
            writer = writer.option("progress.path", str(folder / "records"))
            writer.option("topology.dead.letter.path", str(folder / "letters-sink")).mode("append").save()
            options = {"topology.dead.letter.path": str(folder / "letters-apply")}
            config = {"effects": str(folder / "effects"), "door": f"apply-{use}"}
            rows = apply(some, f"{__spec__.name}:Rows", use=use, config=config, options=options)
            rows.write.mode("overwrite").json(str(folder / f"out/{use}/{number}"))

    stream = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).json(str(folder / "in"))
    query = (
        stream.writeStream.foreachBatch(write)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
