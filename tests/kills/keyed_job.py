"""The query of a campaign of keyed states in a process of its own, whose driver may be killed::

    python -m tests.kills.keyed_job FOLDER

Starts its query again as often as the death of a process ends it, and writes what the error was into FOLDER/failures.
Ends when all rows are read and no timer is left; the states that are kept then are in FOLDER/states.json.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
from pyspark.errors import StreamingQueryException

from pystorm_source import Bolt, Grouping, StatefulBolt, Topology, read_stream, states_of
from pystorm_source.api.state_values import values_of
from testbed.uncontrolled import UNCONTROLLED
from tests.kills.committed import committed
from tests.kills.keyed_model import (
    KEY,
    KEY_TYPES,
    PARTITIONS,
    PER_BATCH,
    TIMER,
    Step,
    faults,
    is_brief,
    key_number,
    key_values,
    put_into,
    text_of,
    text_of_key,
)
from tests.kills.session import of_job
from tests.kills.topologies import Numbers
from tests.stages.random_states import FIELDS, TYPES

QUIET_SECONDS = 3.0
"""Without a call of the bolt, after which the sink is looked at: timers are due within two."""


class Name(Bolt):
    """Gives each offset its key."""

    outputs = ["row bigint", *(f"{name} {ddl}" for name, ddl in KEY.items())]

    def process(self, tup):
        number = key_number(tup.values.partition, tup.values.n)
        self.emit([2 * tup.values.n + PARTITIONS.index(tup.values.partition), *key_values(number)])


class Keep(StatefulBolt):
    """Emits what its state was, and changes it."""

    outputs = ["number bigint", "row bigint", "count bigint", "before string"]
    state_fields = ["count bigint", *(f"{name} {ddl}" for name, ddl in FIELDS.items())]
    exit_on_exception = False

    def initialize(self, conf, context):
        self.effects = Path(conf["effects"]) / f"{os.getpid()}"
        self.failed = set()

    def process(self, tup):
        number, row = tup.values.number, tup.values.row
        state, before = self.begun(number, row)
        if is_brief(number) and state.count is not None:
            state.clear()
            self.emit([number, row, 0, before])
            return
        state.count = (state.count or 0) + 1
        step = Step.of(row)
        step.change(lambda name: getattr(state, name), put_into(state))
        self.set_timers(number, step)
        self.emit([number, row, state.count, before])
        if is_brief(number):
            return
        if step.fate == "never" or (step.fate == "once" and self.is_first(row)):
            raise ValueError("not yet")
        if step.fate == "wrong":
            state.numbers.append("wrong")

    def begun(self, number, row):
        with self.effects.open("a") as file:
            file.write(f"{row:9}\n")
        time.sleep(0.003)
        state = self.state
        return state, text_of(getattr(state, name) for name in ("count", *FIELDS))

    def is_first(self, what):
        was_there = what in self.failed
        self.failed.add(what)
        return not was_there

    def set_timers(self, number, step):
        """A bolt without timers."""


class KeepWithTimers(Keep):
    def set_timers(self, number, step):
        if not is_brief(number) and step.timer is not None:
            if step.timer:
                self.set_timer(step.timer)
            else:
                self.cancel_timer()

    def process_timer(self, key):
        state, before = self.begun(key.number, TIMER)
        if text_of_key(key) != text_of_key(key_values(key.number)):
            before = f"key {text_of_key(key)}, not {text_of_key(key_values(key.number))}"
        state.count = (state.count or 0) + 1
        self.emit([key.number, TIMER, state.count, before])
        if state.count % 5 == 0 and self.is_first((key.number, state.count)):
            raise ValueError("not yet")


class Plain(Topology):
    config = {"topology.dead.letter": "drop"}
    numbers = Numbers.spec()
    name = Name.spec(inputs=[numbers])
    keep = Keep.spec(inputs={name: Grouping.fields(*KEY)}, par=2)


class Timed(Topology):
    config = {"topology.dead.letter": "drop"}
    numbers = Numbers.spec()
    name = Name.spec(inputs=[numbers])
    keep = KeepWithTimers.spec(inputs={name: Grouping.fields(*KEY)}, par=2)


def emitted(folder: Path) -> Iterator[tuple[Any, ...]]:
    """The rows that Spark's sink has committed: key, row, count, state before."""
    for path in committed(folder / "out"):
        columns = ds.dataset(path).to_table(columns=["number", "row", "count", "before"]).to_pydict()
        yield from zip(*columns.values(), strict=True)


class Job:
    """``timers``: whether the bolt has some, in which case the query never ends by itself."""

    def __init__(self, folder: Path):
        self.folder = folder
        told = json.loads((folder / "campaign.json").read_text())
        self.total, self.timers = told["total"], told["timers"]
        self.spark = of_job(folder, more={"spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "UTC"})

    def run(self) -> None:
        while True:
            query = self.start()
            try:
                if not self.timers:
                    query.awaitTermination()
                    return
                if self.await_timers(query):
                    return
            except StreamingQueryException as error:
                with (self.folder / "failures").open("a") as file:
                    file.write(json.dumps(str(error)) + "\n")

    def start(self) -> Any:
        options = {"maxOffsetsPerTrigger": len(PARTITIONS) * PER_BATCH, "topology.stage.partitions": 2, **UNCONTROLLED}
        config = {"kills.total": self.total, "effects": str(self.folder / "effects")}
        made = Timed if self.timers else Plain
        options["topology.state.buckets"] = 4
        rows = read_stream(self.spark, made, scope="cluster", config=config, options=options)
        writer = rows.writeStream.format("parquet").option("checkpointLocation", str(self.folder / "checkpoint"))
        if not self.timers:
            writer = writer.trigger(availableNow=True)
        return writer.start(str(self.folder / "out"))

    def await_timers(self, query: Any) -> bool:
        """Whether all is as the model says. Raises what the query does."""
        while not query.awaitTermination(0.5):
            calls = max((path.stat().st_mtime for path in (self.folder / "effects").iterdir()), default=time.time())
            if time.time() - calls > QUIET_SECONDS and not faults(self.total, True, emitted(self.folder)):
                query.stop()
                return True
        return False

    def write_states(self) -> None:
        reader = self.spark.read.format("statestore").option("stateVarName", "keep")
        found = []
        for row in states_of(reader.load(str(self.folder / "checkpoint"))).collect():
            key = _text(row.key, KEY_TYPES)
            wanted = text_of(key_values(row.key.number))
            state = text_of([row.state["count"]])[:-1] + ", " + _text(row.state, TYPES)[1:]
            found.append([row.key.number, state if key == wanted else f"key {key}, not {wanted}"])
        (self.folder / "states.json").write_text(json.dumps(found))


def _text(row: Any, types: dict[str, Any]) -> str:
    values = ((row[name], values_of(type)) for name, type in types.items())
    return text_of(None if value is None else form.read(value) for value, form in values)


if __name__ == "__main__":
    job = Job(Path(sys.argv[1]))
    job.run()
    job.write_states()
    job.spark.stop()
