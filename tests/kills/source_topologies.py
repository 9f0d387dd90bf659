"""A topology for each ready-made source whose campaign kills processes and servers: its spout, and a bolt that checks
and notes each row."""

import json
import os
import time
from pathlib import Path

from pystorm_source import Bolt, Topology
from pystorm_source.spouts import (
    EventStreamSpout,
    HttpSpout,
    MqttSpout,
    NatsSpout,
    ObjectsSpout,
    PostgresSpout,
    RedisStreamSpout,
    SqsSpout,
)

ROW = ["id long", "text string"]


def text(n: int) -> str:
    """Text of row n."""
    return f"row {n} é"


class Note(Bolt):
    """Its effect: ten bytes, in a file for each process. ``row``: id and text of a tuple."""

    outputs = ROW

    def initialize(self, conf, context):
        self.effects = Path(conf["effects"]) / f"{os.getpid()}"

    def process(self, tup):
        n, said = self.row(tup.values)
        with self.effects.open("a") as file:
            file.write(f"{n:9}\n")
        time.sleep(0.003)
        self.emit([n, said])

    def row(self, values):
        return values.id, values.text


class NoteMessage(Note):
    """Reads a message ``id:text``."""

    def row(self, values):
        n, _, said = values[0].partition(":")
        return int(n), said


class NoteEvent(Note):
    def row(self, values):
        n = int(values.id)
        data = json.dumps({"n": n}) + "\nmore"
        return n, text(n) if [values.event, values.data] == ["edit", data] else repr(values)


class NoteChange(Note):
    def row(self, values):
        return values.id, values.item if values.op in ("row", "snapshot", "insert") else repr(values)


class RowsSpout(HttpSpout):
    outputs = ROW
    page_rows = 12


class Pages(Topology):
    rows = RowsSpout.spec()
    note = Note.spec(inputs=[rows])


class Events(Topology):
    events = EventStreamSpout.spec()
    note = NoteEvent.spec(inputs=[events])


class BodySpout(SqsSpout):
    outputs = ["body string"]


class Bodies(Topology):
    messages = BodySpout.spec()
    note = NoteMessage.spec(inputs=[messages])


class DataSpout(NatsSpout):
    outputs = ["data string"]


class Stream(Topology):
    messages = DataSpout.spec()
    note = NoteMessage.spec(inputs=[messages])


class EntrySpout(RedisStreamSpout):
    outputs = ["n long", "text string"]


class NoteEntry(Note):
    def row(self, values):
        return values.n, values.text


class Entries(Topology):
    entries = EntrySpout.spec()
    note = NoteEntry.spec(inputs=[entries])


class PayloadSpout(MqttSpout):
    outputs = ["payload string"]


class Payloads(Topology):
    messages = PayloadSpout.spec()
    note = NoteMessage.spec(inputs=[messages])


class ChangeSpout(PostgresSpout):
    outputs = ["op string", "id int", "item string"]


class Changes(Topology):
    changes = ChangeSpout.spec()
    note = NoteChange.spec(inputs=[changes])


class Objects(Topology):
    rows = ObjectsSpout.spec(format="ndjson", fields=ROW)
    note = Note.spec(inputs=[rows])
