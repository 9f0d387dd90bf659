"""A table of orders that is written and read, and topologies that read it."""

import os
import signal
from pathlib import Path

import psycopg

from pystorm_source import Topology
from pystorm_source.spouts import PostgresSpout
from tests.source.spark_calls import Checkpoint, Run

LOGICAL = {
    "wal_level": "logical",
    "max_replication_slots": "30",
    "max_wal_senders": "10",
    "max_prepared_transactions": "5",
}
PLAIN = "tests.spouts.postgres.shop:Changes"


class Shop:
    """``name``: the table; the slot and the publication are called as it."""

    def __init__(self, server, connection, name):
        self.server, self.connection, self.name = server, connection, name
        self.others = []
        self.run(f"CREATE TABLE {name} (id int PRIMARY KEY, item text)")

    def run(self, statement, *values):
        return self.connection.execute(statement, values or None)

    def insert(self, *ids, item="ink"):
        self.run(f"INSERT INTO {self.name} SELECT unnest(%s::int[]), %s", list(ids), item)

    def options(self, topology=PLAIN, **more):
        return {
            "topology": topology,
            "postgres.dsn": self.server.place,
            "postgres.tables": self.name,
            "postgres.slot": self.name,
            "postgres.publication": self.name,
            "spout.poll.seconds": "0",
            **{key.replace("__", "."): str(value) for key, value in more.items()},
        }

    def confirmed(self):
        """Up to where the slot has moved, as an int."""
        query = "SELECT (confirmed_flush_lsn - '0/0')::bigint FROM pg_replication_slots WHERE slot_name = %s"
        return self.run(query, self.name).fetchone()[0]

    def wal_status(self):
        return self.run("SELECT wal_status FROM pg_replication_slots WHERE slot_name = %s", self.name).fetchone()[0]

    def restart(self):
        """The server is killed, and is there again."""
        self.server.kill()
        self.start()

    def start(self):
        self.server.start()
        self.connection = psycopg.connect(self.server.place, autocommit=True)

    def copies(self):
        """The tables of the snapshot."""
        found = self.run("SELECT tablename FROM pg_tables WHERE schemaname = %s", f"pystorm_{self.name}")
        return sorted(name for (name,) in found)

    def another(self, name):
        """A further table, which goes with this one."""
        self.others.append(Shop(self.server, self.connection, f"{self.name}_{name}"))
        return self.others[-1]

    def tidy(self, slot=None):
        slot = slot or self.name
        self.run("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s", slot)
        self.run(f"DROP PUBLICATION IF EXISTS {self.name}")
        self.run(f"DROP SCHEMA IF EXISTS pystorm_{slot} CASCADE")
        if slot == self.name:
            for name in (self.name, *(other.name for other in self.others)):
                self.run(f"DROP TABLE IF EXISTS {name} CASCADE")


def rows(checkpoint):
    return [row for batch in checkpoint.rows for row in batch]


def changes(checkpoint):
    """Without positions."""
    return [(op, id, item) for op, _, _, id, item in rows(checkpoint)]


def begun(shop, **more):
    """A query that has read the table as it is."""
    checkpoint, options = Checkpoint(), shop.options(**more)
    run = Run(options, checkpoint)
    run.trigger()
    return run, checkpoint, options


class ChangeSpout(PostgresSpout):
    outputs = ["op string", "lsn long", "seq long", "id int", "item string"]


class Changes(Topology):
    changes = ChangeSpout.spec()


class Everything(Topology):
    changes = PostgresSpout.spec()


def die_once(marker):
    """Kills this process as a crash does, the first time."""
    try:
        Path(marker).touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


class KilledSpout(ChangeSpout):
    """Its task is killed in the middle of the snapshot, and of the changes."""

    def initialize(self, conf, context):
        super().initialize(conf, context)
        self.folder = Path(conf["path"])

    def open(self, partition, start, end):
        super().open(partition, start, end)
        self.calls = 0

    def next_tuple(self):
        self.calls += 1
        if self.calls == 6:
            die_once(self.folder / f"killed in {'changes' if self._range[0] == 'changes' else 'the snapshot'}")
        return super().next_tuple()


class Killed(Topology):
    changes = KilledSpout.spec()
