"""What all states do, on each real store."""

import copy
import pickle
import re
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from operator import add
from uuid import UUID

import pytest

from pystorm_source.errors import ArgumentError, ArgumentTypeError, InternalError, OptionError, WorldError
from pystorm_source.errors.packages import installing
from pystorm_source.states import (
    Entry,
    MemoryStore,
    NonTransactionalMapState,
    OpaqueMapState,
    RedisStore,
    SqlStore,
    TransactionalMapState,
)
from pystorm_source.states.key import key_text

KINDS = [NonTransactionalMapState, TransactionalMapState, OpaqueMapState]
KEYS = ["ann", "12", 12, True, None, "", "null", '["a",1]', ("a", 1), "line\n", "nul\0", "naïve ☃", 1.5, b"ann",
        date(2026, 3, 1), Decimal("1.50"), UUID(int=7), "it's; DROP TABLE totals"]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_values_are_there_for_another_process(url, name, kind):
    state = kind(url, name)
    keys = [f"k{n}" for n in range(2_500)]
    state.aggregate(0, dict.fromkeys(keys, 1), add)
    assert state.aggregate(1, {"k0": 5, "new": {"sum": 1.5, "of": ["a", None]}}, add)["k0"] == 6
    again = kind(url, name)
    assert again.multi_get([*keys, "none"]) == [6, *[1] * 2_499, None]
    assert again.get("new") == {"sum": 1.5, "of": ["a", None]}
    assert again.multi_get([]) == []


def test_each_key_is_its_own(url, name):
    state = OpaqueMapState(url, name)
    state.aggregate(0, [(key, f"value {n}") for n, key in enumerate(KEYS)], add)
    read = OpaqueMapState(url, name)
    assert read.multi_get(KEYS) == [f"value {n}" for n in range(len(KEYS))]


def test_a_time_as_a_key_is_the_same_in_every_zone():
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert key_text((noon, 1)) == key_text((noon.astimezone(timezone(timedelta(hours=5))), 1))


@pytest.mark.parametrize("key", [float("nan"), ("a", float("inf")), ("a", ("b",)), ("a", object()), frozenset()])
def test_what_is_no_key_is_refused(key):
    with pytest.raises(ArgumentTypeError, match="a key is a text, a number, "):
        OpaqueMapState(MemoryStore()).get(key)


def test_a_key_that_comes_several_times(url, name):
    state = TransactionalMapState(url, name)
    assert state.aggregate(0, [("ann", 1), ("bob", 2), ("ann", 3)], add) == {"ann": 4, "bob": 2}
    lists = TransactionalMapState(url, f"{name}_lists")
    appended = lists.aggregate(0, [("ann", 1), ("ann", 2)], lambda values, new: [*values, new], zero=list)
    assert appended == {"ann": [1, 2]}


def test_nothing_is_written_by_a_batch_that_raises(url, name):
    state = OpaqueMapState(url, name)
    state.aggregate(0, {"ann": 1}, add)
    with pytest.raises(ZeroDivisionError), state.batch(1) as batch:
        batch.update({"ann": lambda stored: 9, "bob": lambda stored: 1 / 0})
    assert state.get("ann") == 1
    assert state.aggregate(1, {"ann": 1}, add) == {"ann": 2}


def test_a_batch_that_has_ended_is_refused():
    with OpaqueMapState(MemoryStore()).batch(3) as batch:
        batch.put("ann", 1)
    with pytest.raises(ArgumentError, match="batch 3 has ended"):
        batch.put("ann", 2)


@pytest.mark.parametrize("number", [-1, "1", None, 1.0])
def test_a_batch_has_a_number(number):
    with pytest.raises(ArgumentTypeError, match="a batch has a number from 0 on"):
        OpaqueMapState(MemoryStore()).batch(number)


def test_an_updater_may_change_the_value_that_it_gets(url, name):
    """The value before is another object, so a replay still begins with it."""
    state = OpaqueMapState(url, name)

    def append(stored):
        stored = stored or []
        stored.append(len(stored))
        return stored

    assert state.update(0, {"ann": append}) == {"ann": [0]}
    assert state.update(1, {"ann": append}) == state.update(1, {"ann": append}) == {"ann": [0, 1]}


# --- values


def test_values_of_a_type_that_json_does_not_tell(url, name):
    state = OpaqueMapState(url, name, type=Decimal)
    state.aggregate(0, {"ann": Decimal("0.10")}, add)
    state.aggregate(1, {"ann": Decimal("0.20")}, add)
    assert repr(OpaqueMapState(url, name, type=Decimal).get("ann")) == "Decimal('0.30')"
    with pytest.raises(ArgumentError, match="is not a list as JSON"):
        OpaqueMapState(url, name, type=list[int]).get("ann")


@pytest.mark.parametrize("value", [Decimal(1), float("nan"), (1, 2), {1: 2}, {"a": (1,)}, {1}, b"x", datetime.now(UTC)])
def test_a_value_that_would_come_back_as_another_is_refused(value):
    state = OpaqueMapState(MemoryStore())
    with pytest.raises(ArgumentTypeError, match="a state keeps values as JSON, and this one cannot be kept"):
        state.update(0, {"ann": lambda stored: value})
    assert state.store.entries == {}


@pytest.mark.parametrize("value", [10**30, -1, 0.1, 1e300, True, "☃ \0 \n", [], {"a": [1, {"b": None}]}, None])
def test_a_value_comes_back_as_it_was(url, name, value):
    OpaqueMapState(url, name).update(0, {"ann": lambda stored: value})
    read = OpaqueMapState(url, name).get("ann")
    assert read == value and type(read) is type(value)


# --- the cache


class Counted(MemoryStore):
    """Counts the keys that are read; fails a put when it is told to."""

    def __init__(self):
        super().__init__()
        self.read = 0
        self.fails_after = None

    def multi_get(self, keys):
        self.read += len(keys)
        return super().multi_get(keys)

    def multi_put(self, entries):
        if self.fails_after is not None:
            super().multi_put(dict(list(entries.items())[: self.fails_after]))
            raise ConnectionError("gone")
        super().multi_put(entries)


@pytest.mark.parametrize(("cache", "read"), [(10, 0), (2, 1), (0, 3)])
def test_the_cache_spares_reads_of_the_keys_that_were_used_last(cache, read):
    state = TransactionalMapState(Counted(), cache=cache)
    state.aggregate(0, {"ann": 1, "bob": 1, "eve": 1}, add)
    state.store.read = 0
    assert state.aggregate(1, {"eve": 1, "bob": 1, "ann": 1}, add) == {"ann": 2, "bob": 2, "eve": 2}
    assert state.store.read == read


@pytest.mark.parametrize("kind", [TransactionalMapState, OpaqueMapState])
def test_a_store_refuses_what_is_older_whatever_the_value_is(url, name, kind):
    values = [1, -2.5, 1e300, None, True, 'a","txid":1}', '{"value":1,"txid":1}', {"txid": 1}, [{"value": 1}]]
    written = {f"k{n}": value for n, value in enumerate(values)}
    state = kind(url, name)
    state.aggregate(5, written, add)
    for key in written:
        assert state.store.multi_put({"new": Entry("1", 4, "null"), key: Entry("9", 4, "null")}) < 2
    assert kind(url, name).multi_get(["new", *written]) == [None, *values]
    same = {key: Entry("9", 5, "null") for key in written}
    assert state.store.multi_put(same) == len(same)
    assert kind(url, name).multi_get(written) == [9] * len(values)


def test_a_chunk_of_redis_is_not_too_large_for_its_script(redis, name):
    state = TransactionalMapState(RedisStore(redis.url, name, chunk=100_000), cache=0)
    keys = [f"k{n}" for n in range(10_000)]
    for batch_id in range(2):
        state.aggregate(batch_id, dict.fromkeys(keys, 1), add)
    assert set(state.multi_get(keys)) == {2}


@pytest.mark.parametrize(("type_", "value"), [(str, 5), (int, "5"), (int, 1.5), (list[int], {"a": 1}), (date, "today")])
def test_a_value_that_is_not_of_the_states_type_is_refused_before_it_is_stored(type_, value):
    store = MemoryStore()
    with pytest.raises(ArgumentTypeError, match="cannot be kept.*Given: "):
        TransactionalMapState(store, type=type_).update(0, {"ann": lambda stored: value})
    assert store.entries == {}


@pytest.mark.parametrize("kind", [TransactionalMapState, OpaqueMapState])
def test_after_a_put_that_was_cut_the_store_is_asked_and_not_the_cache(kind):
    """As Storm's cache would not: it takes the values before they are put."""
    state = kind(Counted())
    state.aggregate(0, {"ann": 1, "bob": 1}, add)
    state.store.fails_after = 1
    with pytest.raises(ConnectionError):
        state.aggregate(1, {"ann": 1, "bob": 1}, add)
    state.store.fails_after = None
    assert state.aggregate(1, {"ann": 1, "bob": 1}, add) == {"ann": 2, "bob": 2}
    assert state.multi_get(["ann", "bob"]) == [2, 2]


def test_gets_outside_of_batches_see_what_another_process_writes(url, name):
    state, other = OpaqueMapState(url, name), OpaqueMapState(url, name)
    state.aggregate(0, {"ann": 1}, add)
    other.aggregate(1, {"ann": 1}, add)
    assert state.get("ann") == 2


def test_a_copy_in_another_process_has_no_entries_of_this_one(url, name):
    state = OpaqueMapState(url, name, type=Decimal)
    state.aggregate(0, {"ann": Decimal(1)}, add)
    copied = pickle.loads(pickle.dumps(state))
    assert len(copied._cache) == 0 and copied._cache.size == state._cache.size
    assert copied.get("ann") == Decimal(1)


def test_a_store_in_memory_is_not_copied():
    with pytest.raises(ArgumentTypeError, match="a MemoryStore lives in one process"):
        copy.copy(MemoryStore())


# --- what is wrong


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", KINDS)
def test_a_state_of_another_kind_is_refused(url, name, kind, other):
    kind(url, name).aggregate(0, {"ann": 1}, add)
    if other is kind:
        assert other(url, name).get("ann") == 1
    else:
        with pytest.raises(ArgumentError) as raised:
            other(url, name).get("ann")
        assert raised.value.code == "PYSTORM_STATE_OF_ANOTHER_KIND"


def test_what_something_else_wrote_into_redis_is_refused(redis, name):
    store = RedisStore(redis.url, name)
    for text in ["12", "{", b"\xff", "[]", '{"value":1,"txid":"x"}']:
        store.client().set(f"{name}:ann", text)
        with pytest.raises(ArgumentError, match="Redis has something else under") as raised:
            TransactionalMapState(store).get("ann")
        assert raised.value.code == "PYSTORM_STATE_OF_ANOTHER_KIND"


@pytest.mark.parametrize(
    "wrong",
    [
        "mysql://u:secret@host/db",
        "totals.db",
        "",
        7,
        "sqlite://",
        "sqlite:///:memory:",
        "postgresql://host:port/db",
        None,
    ],
)
def test_a_url_of_no_store_is_refused(wrong):
    with pytest.raises(ArgumentError) as raised:
        OpaqueMapState(wrong, "totals")
    assert raised.value.code == "PYSTORM_INVALID_ARGUMENT" and "secret" not in str(raised.value)


@pytest.mark.parametrize("given", [("sqlite:///a.db",), (MemoryStore(), "totals")])
def test_a_url_needs_a_name_and_a_store_has_one(given):
    with pytest.raises(ArgumentError, match="a URL and a name for its table or its keys, or a store alone"):
        OpaqueMapState(*given)


@pytest.mark.parametrize("cache", [-1, None, 1.5])
def test_a_cache_has_a_size(cache):
    with pytest.raises(ArgumentError, match="cache is a number of entries"):
        OpaqueMapState(MemoryStore(), cache=cache)


@pytest.mark.parametrize(
    ("url", "module", "extra"),
    [
        ("sqlite:///a.db", "sqlalchemy", "sql"),
        ("postgresql://host/db", "psycopg", "postgresql"),
        ("redis://host", "redis", "redis"),
    ],
)
def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch, url, module, extra):
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(OptionError, match=rf"needs the package {module}: {re.escape(installing(extra))}"):
        OpaqueMapState(url, "totals")


@pytest.mark.parametrize("url", ["postgresql://u:secret@127.0.0.1:9/db", "redis://:secret@127.0.0.1:9/0"])
def test_a_store_that_does_not_answer_is_the_worlds_fault_and_its_password_is_not_shown(url):
    state = OpaqueMapState(url, "totals")
    with pytest.raises(WorldError) as raised:
        state.get("ann")
    assert raised.value.code == "PYSTORM_STORE_UNREACHABLE"
    assert "secret" not in str(raised.value) and "secret" not in repr(state)


def test_a_table_that_may_not_be_written_is_told_by_the_database(postgres, name):
    import psycopg

    OpaqueMapState(postgres.url, name).prepare()
    with psycopg.connect(postgres.place, autocommit=True) as database:
        database.execute(f"CREATE ROLE {name}_reader LOGIN")
        database.execute(f"GRANT SELECT ON {name} TO {name}_reader")
    reader = OpaqueMapState(postgres.url.replace("reader@", f"{name}_reader@"), name)
    assert reader.get("ann") is None
    with pytest.raises(WorldError, match="permission denied for table"):
        reader.aggregate(0, {"ann": 1}, add)


def test_a_table_in_a_schema_with_a_name_that_needs_quotes(postgres):
    import psycopg

    with psycopg.connect(postgres.place, autocommit=True) as database:
        database.execute('CREATE SCHEMA "The Shop"')
    state = OpaqueMapState(SqlStore(postgres.url, 'The Shop.all "totals"'))
    state.aggregate(0, {"ann": 1}, add)
    assert OpaqueMapState(SqlStore(postgres.url, 'The Shop.all "totals"')).get("ann") == 1


def test_people_can_read_what_is_kept(postgres, redis, name):
    import psycopg

    for url in (postgres.url, redis.url):
        state = OpaqueMapState(url, name)
        state.aggregate(6, {"ann": 10.5}, add)
        state.aggregate(7, {"ann": 2}, add)
    with psycopg.connect(postgres.place) as database:
        row = database.execute(f"SELECT value::numeric, txid, previous FROM {name} WHERE key = 'ann'").fetchone()
    assert row == (Decimal("12.5"), 7, "10.5")
    text = RedisStore(redis.url, name).client().get(f"{name}:ann")
    assert text == b'{"value":12.5,"txid":7,"previous":10.5}'


@pytest.mark.parametrize(("entries", "message"), [
    ({"a\nb": Entry("1", 0)}, "has a line break"),
    ({"a": Entry("1", 0), "b": Entry("1", 1)}, "of several batches"),
])  # fmt: skip
def test_entries_that_no_state_writes_are_refused_and_none_is_written(postgres, name, entries, message):
    store = SqlStore(postgres.url, name)
    store.prepare(TransactionalMapState.fields)
    with pytest.raises(InternalError, match=message):
        store.multi_put(entries)
    assert store.multi_get(["a", "b"]) == [None, None]


def test_a_put_of_old_and_new_keys(url, name):
    state = TransactionalMapState(url, name)
    state.aggregate(0, {f"k{n}": 1 for n in range(100)}, add)
    state.aggregate(1, {f"k{n}": 1 for n in range(50, 150)}, add)
    assert TransactionalMapState(url, name).multi_get([f"k{n}" for n in range(150)]) == [
        *[1] * 50,
        *[2] * 50,
        *[1] * 50,
    ]
