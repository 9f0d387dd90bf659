"""The server or the client is killed (-9) in the middle of a put, and the batch comes again: the totals are exact.

The negative control is the state without a txid, which counts twice whatever part of the batch had been written.
"""

import json
import os
import signal
import subprocess
import sys
from operator import add

import pytest
from sqlalchemy import event

from pystorm_source.errors import WorldError
from pystorm_source.states import (
    NonTransactionalMapState,
    OpaqueMapState,
    RedisStore,
    SqlStore,
    TransactionalMapState,
)

KEYS, CHUNK, BATCHES, CUT = 30, 10, 4, 2
POINTS = ["before", "between chunks", "after"]
EXACT = [TransactionalMapState, OpaqueMapState]


def rows(batch_id, factor=1):
    return {f"k{n}": factor * (n + 1) * 10**batch_id for n in range(KEYS)}


def totals(factor_of_the_cut_batch=1):
    factors = {CUT: factor_of_the_cut_batch}
    return [sum(rows(b, factors.get(b, 1))[f"k{n}"] for b in range(BATCHES)) for n in range(KEYS)]


def store_of(url, name):
    return (RedisStore if url.startswith("redis") else SqlStore)(url, name, chunk=CHUNK)


def kill_at(point, store, kill):
    """Lets the store's next put come as far as ``point``, then kills."""
    written = []

    def killing(part):
        if point == "before" and part == "begun":
            kill()
        written.append(part)
        if point == "between chunks" and part == "chunk" and written.count(part) == 2:
            kill()

    if isinstance(store, RedisStore):
        put = store._put

        def killing_put(*given):
            killing("begun")
            written = put(*given)
            killing("chunk")
            return written

        store._put = killing_put
    else:

        @event.listens_for(store.engine(), "before_cursor_execute")
        def before(connection, cursor, statement, *more):
            if statement.startswith("UPDATE"):
                killing("begun")

        @event.listens_for(store.engine(), "after_cursor_execute")
        def after(connection, cursor, statement, *more):
            if statement.startswith("UPDATE"):
                killing("chunk")


def cut_and_again(kind, server, name, point, factor=1):
    """Batches, of which one is cut and comes again, in a state of another process; its totals."""
    state = kind(store_of(server.url, name))
    for batch_id in range(CUT):
        state.aggregate(batch_id, rows(batch_id), add)
    if point == "after":
        state.aggregate(CUT, rows(CUT), add)  # and Spark does not note that it is done
        server.kill()
    else:
        kill_at(point, state.store, server.kill)
        with pytest.raises(WorldError, match="does not answer"):
            state.aggregate(CUT, rows(CUT), add)
    server.start()
    again = kind(store_of(server.url, name))
    again.aggregate(CUT, rows(CUT, factor), add)
    again.aggregate(CUT + 1, rows(CUT + 1), add)
    return kind(store_of(server.url, name)).multi_get(rows(0))


@pytest.fixture(params=["postgres", "redis"])
def server(request):
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("kind", EXACT)
def test_totals_are_exact_after_the_server_was_killed(kind, point, server, name):
    assert cut_and_again(kind, server, name, point) == totals()


@pytest.mark.parametrize("point", POINTS)
def test_an_opaque_state_has_the_rows_of_the_replay_alone(point, server, name):
    assert cut_and_again(OpaqueMapState, server, name, point, factor=7) == totals(7)


def test_a_state_without_txid_counts_a_batch_twice_that_was_written(server, name):
    wrong = cut_and_again(NonTransactionalMapState, server, name, "after")
    assert wrong == [total + once for total, once in zip(totals(), rows(CUT).values(), strict=True)]


def test_a_state_without_txid_is_wrong_in_parts_after_a_cut_put(redis, name):
    """In Redis. A database undoes the transaction, so there this very cut does no harm."""
    wrong = cut_and_again(NonTransactionalMapState, redis, name, "between chunks")
    twice = [a == b for a, b in zip(wrong, totals(), strict=True)]
    assert (twice.count(False), twice.count(True)) == (2 * CHUNK, KEYS - 2 * CHUNK)


def test_a_transactional_state_keeps_the_first_rows_of_a_batch_that_has_others_then(redis, name):
    """Why there are opaque states: keys that were written keep the first rows, the others have the new ones."""
    mixed = cut_and_again(TransactionalMapState, redis, name, "between chunks", factor=7)
    assert mixed == totals()[: 2 * CHUNK] + totals(7)[2 * CHUNK :]


@pytest.mark.parametrize("kind", [*EXACT, NonTransactionalMapState])
def test_after_the_client_was_killed_in_a_put(kind, server, name):
    state = kind(store_of(server.url, name))
    for batch_id in range(CUT):
        state.aggregate(batch_id, rows(batch_id), add)
    job = [sys.executable, "-m", "tests.states.test_kills", kind.__name__, server.url, name]
    killed = subprocess.run(job, capture_output=True, text=True, timeout=60, env=os.environ | {"PYTHONPATH": "."})
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    again = kind(store_of(server.url, name))
    again.aggregate(CUT, rows(CUT), add)
    again.aggregate(CUT + 1, rows(CUT + 1), add)
    is_exact = again.multi_get(rows(0)) == totals()
    assert is_exact or (kind is NonTransactionalMapState and server.url.startswith("redis"))
    assert not (is_exact and kind is NonTransactionalMapState and server.url.startswith("redis"))


@pytest.mark.parametrize("kind", [*EXACT, NonTransactionalMapState])
def test_a_put_that_comes_when_later_batches_are_done_changes_nothing(kind, url, name):
    """An attempt is held by SIGSTOP between get and put; another one ends its batch, and the next batch is done."""
    state = kind(store_of(url, name))
    for batch_id in range(CUT):
        state.aggregate(batch_id, rows(batch_id), add)
    job = [sys.executable, "-m", "tests.states.test_kills", kind.__name__, url, name, "held"]
    with subprocess.Popen(job, stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": "."}) as late:
        try:
            assert os.WIFSTOPPED(os.waitpid(late.pid, os.WUNTRACED)[1])
            for batch_id in range(CUT, BATCHES):
                state.aggregate(batch_id, rows(batch_id), add)
            late.send_signal(signal.SIGCONT)
            said = late.communicate(timeout=60)[1]
        finally:
            late.kill()
    found = kind(store_of(url, name)).multi_get(rows(0))
    if kind is NonTransactionalMapState:  # the control: it has no batch to tell by
        assert found != totals()
        return
    assert found == totals()
    assert f"[PYSTORM_BATCH_BEHIND_STATE] batch {CUT + 1} has written key 'k0' since batch {CUT} read it" in said


def held_here(kind, url, name):
    """The attempt that is held: it has read, and not yet put."""
    state = globals()[kind](store_of(url, name))
    put = state.store.multi_put

    def late_put(entries):
        os.kill(os.getpid(), signal.SIGSTOP)
        return put(entries)

    state.store.multi_put = late_put
    state.aggregate(CUT, rows(CUT), add)


def cut_here(kind, url, name):
    """The job that is killed: two chunks of the batch are written."""
    state = globals()[kind](store_of(url, name))
    kill_at("between chunks", state.store, lambda: os.kill(os.getpid(), signal.SIGKILL))
    state.aggregate(CUT, rows(CUT), add)
    print(json.dumps(state.multi_get(rows(0))))


if __name__ == "__main__":
    (held_here if sys.argv[4:] else cut_here)(*sys.argv[1:4])
