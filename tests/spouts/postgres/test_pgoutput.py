"""What is decoded is what was written: random statements on a real PostgreSQL, against a model of the table."""

import itertools

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pystorm_source.testing.driven import Driven
from tests.sizes import sized
from tests.spouts.postgres.shop import Everything

TEXTS = st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
LARGE = 9000
"""Characters that PostgreSQL puts aside, and does not send again unless they change."""
VALUES = st.tuples(TEXTS, TEXTS, st.booleans())
STATEMENTS = st.one_of(
    st.tuples(st.just("put"), st.integers(0, 4), VALUES),
    st.tuples(st.just("short"), st.integers(0, 4), TEXTS),
    st.tuples(st.just("move"), st.integers(0, 4), st.integers(0, 4)),
    st.tuples(st.just("delete"), st.integers(0, 4), st.none()),
    st.tuples(st.just("truncate"), st.none(), st.none()),
)
TRANSACTIONS = st.lists(st.tuples(st.lists(STATEMENTS, max_size=6), st.booleans()), min_size=1, max_size=4)
_slots = itertools.count()


class Model:
    """What a decoder must give for each statement. ``full``: with the whole row before."""

    def __init__(self, shop, full):
        self.shop, self.full = shop, full
        self.rows = {}
        self.expected = []

    def apply(self, kind, id, value):
        name, run = self.shop.name, self.shop.run
        if kind == "truncate":
            run(f"TRUNCATE {name}")
            self.rows.clear()
            self.expected.append(("truncate", None, None, []))
        elif kind == "put":
            self._put(id, *value)
        elif id not in self.rows:
            return
        elif kind == "short":
            run(f"UPDATE {name} SET short = %s WHERE id = %s", value, id)
            self._updated(id, self.rows[id] | {"short": value}, large_is_sent=False)
        elif kind == "delete":
            run(f"DELETE FROM {name} WHERE id = %s", id)
            old = self._old(self.rows.pop(id), is_known=True)
            self.expected.append(("delete", old, old, []))
        elif value not in self.rows:
            run(f"UPDATE {name} SET id = %s WHERE id = %s", value, id)
            self._updated(id, self.rows[id] | {"id": str(value)}, large_is_sent=False)

    def _put(self, id, short, item, is_large):
        item = (item or "x") * LARGE if is_large else item
        row = {"id": str(id), "item": item, "short": short}
        if id in self.rows:
            self.shop.run(f"UPDATE {self.shop.name} SET item = %s, short = %s WHERE id = %s", item, short, id)
            self._updated(id, row, large_is_sent=True)
        else:
            self.shop.run(f"INSERT INTO {self.shop.name} VALUES (%s, %s, %s)", id, item, short)
            self.rows[id] = row
            self.expected.append(("insert", row, None, []))

    def _updated(self, id, row, large_is_sent):
        before = self.rows.pop(id)
        self.rows[int(row["id"])] = row
        old = self._old(before, is_known=self.full or before["id"] != row["id"])
        is_left_out = not large_is_sent and not self.full and len((row["item"] or "").encode()) > LARGE - 1
        sent = {name: value for name, value in row.items() if not (is_left_out and name == "item")}
        self.expected.append(("update", sent, old, ["item"] if is_left_out else []))

    def _old(self, row, is_known):
        return None if not is_known else dict(row) if self.full else {"id": row["id"]}


@settings(max_examples=sized(60), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(transactions=TRANSACTIONS, full=st.booleans())
def test_changes_are_what_was_written_in_the_order_of_commits(shop, transactions, full):
    shop.run(f"DROP TABLE {shop.name}")
    shop.run(f"CREATE TABLE {shop.name} (id int PRIMARY KEY, item text, short text)")
    shop.run(f"ALTER TABLE {shop.name} ALTER item SET STORAGE EXTERNAL")
    shop.run(f"ALTER TABLE {shop.name} REPLICA IDENTITY {'FULL' if full else 'DEFAULT'}")
    shop.run(f"DROP PUBLICATION IF EXISTS {shop.name}")
    slot = f"{shop.name}_{next(_slots)}"
    driven = Driven(Everything.changes, shop.options(postgres__slot=slot, postgres__snapshot=False))
    known = {"changes": driven.driver.snapshot({}, {}).heads["changes"][0]}
    try:
        model, ends = Model(shop, full), [0]
        for statements, commits in transactions:
            rows, count = dict(model.rows), len(model.expected)
            shop.run("BEGIN")
            for statement in statements:
                model.apply(*statement)
            shop.run("COMMIT" if commits else "ROLLBACK")
            if not commits:
                model.rows = rows
                del model.expected[count:]
            ends.append(len(model.expected))
        start, end = driven.driver.snapshot(known, {}).heads["changes"]
        found = driven.read("changes", start, end) if end > start else []
        decoded = [(op, row and dict(row), old and dict(old), left) for _, (_, _, op, *_, row, old, left) in found]
        assert decoded == model.expected
        assert [offset for offset, _ in found] == [row[3] for _, row in found], "the offset is the commit's"
        groups = [len(list(rows)) for _, rows in itertools.groupby(found, key=lambda row: row[1][3])]
        assert groups == [b - a for a, b in itertools.pairwise(ends) if b > a], "transactions are together"
        for cut in {offset for offset, _ in found}:
            halves = driven.read("changes", start, cut) + driven.read("changes", cut, end)
            assert halves == found
    finally:
        driven.driver.cleanup()
        shop.run("SELECT pg_drop_replication_slot(%s)", slot)
