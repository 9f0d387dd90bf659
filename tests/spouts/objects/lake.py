"""Objects for tests: a folder of this machine's, or a bucket of a real S3 server (moto's)."""

import io
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pystorm_source import Bolt, Topology
from pystorm_source.spouts import ObjectsSpout
from pystorm_source.testing import ManualClock
from tests.source.journal_topologies import die_once
from tests.spouts.drive import Driven

IDS = ["id long"]


def table(ids):
    return pa.table({"id": pa.array(list(ids), pa.int64()), "text": [f"row {n} é" for n in ids]})


def parquet(ids, rows=None):
    return written(table(ids), rows)


def written(table, rows=None):
    """The table as Parquet."""
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=rows)
    return sink.getvalue()


def ndjson(ids):
    return "".join(f'{{"id": {n}, "text": "row {n} é"}}\n' for n in ids).encode()


class Folder:
    """A local prefix."""

    def __init__(self, path: Path):
        self.path = str(path)
        self.options: dict[str, str] = {}
        path.mkdir(parents=True, exist_ok=True)

    def put(self, name, data):
        path = Path(self.path, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_name(f".{path.name}")  # an object appears whole
        aside.write_bytes(data)
        os.replace(aside, path)

    def delete(self, name):
        Path(self.path, name).unlink()


class Bucket:
    """A prefix in a bucket of an ``S3Server``."""

    def __init__(self, server, name):
        self.server = server
        self.path = f"s3://{name}/in"
        self.options = server.options()
        self._name, self._client = name, server.client()
        self._client.create_bucket(Bucket=name)

    def put(self, name, data):
        self._client.put_object(Bucket=self._name, Key=f"in/{name}", Body=data)

    def delete(self, name):
        self._client.delete_object(Bucket=self._name, Key=f"in/{name}")


class Slow(ManualClock):
    """Each question takes a hundredth of a second."""

    def monotonic(self):
        self.advance(0.01)
        return super().monotonic()


def driven(lake, fields=IDS, format="ndjson", journal=None, clock=None, **config):
    """``config``: options with ``__`` for a dot."""
    found = {key.replace("__", "."): value for key, value in config.items()}
    if journal is not None:
        found["journal.path"] = str(journal)
    spec = ObjectsSpout.spec(path=lake.path, format=format, fields=fields, config={**lake.options, **found})
    return Driven(spec, clock=clock)


class KilledSpout(ObjectsSpout):
    """Kills its process at an id, once."""

    outputs = ["id long", "day date"]

    def initialize(self, conf, context):
        super().initialize(conf, context)
        self.folder = Path(conf["path"]).parent

    def emit(self, values, tup_id=None):
        if values[0] == 30:
            die_once(self.folder / "spout killed")
        return super().emit(values, tup_id)


class KilledBolt(Bolt):
    """Kills its process at row 20, once."""

    outputs = ["id long", "day date"]

    def initialize(self, conf, context):
        self.folder = Path(conf["path"]).parent

    def process(self, tup):
        if tup.values[0] == 20:
            die_once(self.folder / "bolt killed")
        self.emit(tup.values)


class Killed(Topology):
    rows = KilledSpout.spec(format="ndjson")
    through = KilledBolt.spec(inputs=[rows])


class Drifting(Topology):
    rows = ObjectsSpout.spec(format="parquet", fields=["id long", "item string"], rescued="_rescued_data")
