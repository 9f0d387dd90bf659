"""Attempts that agree on a batch where no store operation is exclusive, one store operation at a time, by a seed."""

import random
import threading

import pytest

from pystorm_source.errors import DataLossError, WorldError
from pystorm_source.journal.ballot import Ballot, decide
from tests.spouts.mutations import COUNT, mutated


class MemoryStore:
    """An object store: objects appear whole, and a later reader sees what was written."""

    folder = "memory"

    def __init__(self, turn=lambda: None):
        self.objects = {}
        self.turn = turn
        self.puts = self.reads = 0

    def names(self):
        self.turn()
        return sorted(self.objects)

    def read(self, name):
        self.turn()
        self.reads += 1
        return self.objects.get(name)

    def replace(self, name, data):
        self.turn()
        self.puts += 1
        self.objects[name] = data


class Turns:
    """Lets one of several threads go on at a time, chosen by ``rng``; some of them are killed half-way."""

    def __init__(self, rng, count, deaths):
        self.rng = rng
        self.condition = threading.Condition()
        self.waiting = set()
        self.running = count
        self.deaths = deaths
        self.chosen = None

    def wait(self):
        me = threading.get_ident()
        with self.condition:
            self.waiting.add(me)
            self._choose()
            self.condition.wait_for(lambda: self.chosen == me, timeout=30)
            self.chosen = None
            self.waiting.discard(me)
            if self.deaths and self.rng.random() < 0.1:
                self.deaths -= 1
                raise Killed

    def over(self):
        with self.condition:
            self.running -= 1
            self._choose()

    def _choose(self):
        if self.chosen is None and self.waiting and len(self.waiting) == self.running:
            self.chosen = self.rng.choice(sorted(self.waiting))
            self.condition.notify_all()


class Killed(Exception):
    pass


@pytest.mark.parametrize("seed", range(60))
def test_all_attempts_agree_on_the_value_of_one_of_them(seed):
    rng = random.Random(seed)
    count = rng.choice([2, 2, 3, 4])
    turns = Turns(rng, count, deaths=rng.randrange(count))
    store = MemoryStore(turns.wait)
    decided = []

    def attempt(name):
        try:
            decided.append(decide(store, "0-9.", name, name.encode(), lambda seconds: turns.wait()))
        except (Killed, WorldError):
            pass
        finally:
            turns.over()

    threads = [threading.Thread(target=attempt, args=(f"{i:x}",)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    store.turn = lambda: None
    late = decide(store, "0-9.", "late", b"late", lambda seconds: None)
    assert set(decided) <= {late}
    assert late in {f"{i:x}".encode() for i in range(count)} | ({b"late"} if not decided else set())


def test_alone_it_costs_two_puts_and_reads_nothing():
    store = MemoryStore()
    assert decide(store, "0-9.", "a", b"mine", lambda seconds: None) == b"mine"
    assert (store.puts, store.reads) == (2, 0)


def test_who_comes_later_carries_on_what_was_accepted():
    store = MemoryStore()
    store.replace("0-9.a.ballot", Ballot((1, "a"), (1, "a"), b"first").to_bytes())
    assert decide(store, "0-9.", "b", b"second", lambda seconds: None) == b"first"


def test_a_promise_of_an_attempt_that_died_holds_nobody_up():
    store = MemoryStore()
    store.replace("0-9.z.ballot", Ballot((40, "z")).to_bytes())
    assert decide(store, "0-9.", "a", b"mine", lambda seconds: None) == b"mine"


@pytest.mark.parametrize("data", [b"", b"[]", b'[[1,2],null,""]', b'[[1,"a"],null,7]', b"\xff", b"[" * 3000])
def test_what_is_no_ballot_is_an_error_that_names_it(data):
    store = MemoryStore()
    store.replace("0-9.z.ballot", data)
    with pytest.raises(DataLossError, match=r"Given: 'memory/0-9.z.ballot'"):
        decide(store, "0-9.", "a", b"mine", lambda seconds: None)


def test_a_mutated_ballot_is_refused_or_says_the_same():
    """A number that changed could make two attempts decide on two values."""
    ballot = Ballot((40, "a"), (3, "b"), b"value")
    rng = random.Random(6)
    refused = 0
    for _ in range(COUNT):
        try:
            assert Ballot.parse(mutated(ballot.to_bytes(), rng), "") == ballot
        except DataLossError:
            refused += 1
    assert refused > COUNT * 0.8
