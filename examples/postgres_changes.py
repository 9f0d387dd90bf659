"""How much the balance of each account changed: the rows of a PostgreSQL table, then every change of it.

Needs ``ALTER TABLE accounts REPLICA IDENTITY FULL``, so that an update tells the row before it.
"""

import json

from pystorm_source import Bolt, Topology
from pystorm_source.spouts import PostgresSpout


class MovementBolt(Bolt):
    outputs = ["account string", "cents long", "lsn long"]

    def process(self, tup):
        op, lsn, row, old = tup.values
        if op == "truncate":
            return
        after = 0 if op == "delete" else int(json.loads(row)["cents"])
        before = int(json.loads(old)["cents"]) if old else 0
        self.emit([json.loads(row)["name"], after - before, lsn])


class Accounts(Topology):
    changes = PostgresSpout.spec(
        tables="public.accounts", slot="accounts", fields=["op string", "lsn long", "row string", "old string"]
    )
    movements = MovementBolt.spec(inputs=[changes])
