"""A look at a folder of many known files does for each of them what it has to, and nothing besides."""

import gc

import pytest

from pystorm_source.spouts import FilesSpout
from pystorm_source.spouts.files.identity.identity import FileIdentity
from pystorm_source.testing.driven import Driven

FILES = 3000


@pytest.fixture
def looks(tmp_path):
    """A driver's spout that has seen all files, and what its next look is given."""
    for number in range(FILES):
        (tmp_path / f"{number}.log").write_text(f"line {number}\n")
    spout = Driven(FilesSpout.spec(path=tmp_path)).driver
    found = spout.snapshot({}, {})
    assert len(found.heads) == FILES
    return spout, {name: end for name, (_, end) in found.heads.items()}, found.state


def test_the_garbage_collector_rests_while_it_looks(looks):
    spout, known, state = looks
    generations = []
    gc.callbacks.append(lambda phase, told: generations.append(told["generation"]))
    try:
        found = spout.snapshot(known, state)
    finally:
        gc.callbacks.pop()
    assert len(generations) <= 2  # begin and end of the one that was due when it went on
    assert len(found.heads) == FILES
    assert gc.isenabled()


def test_a_name_is_read_once_however_often_it_is_looked_at(looks, monkeypatch):
    spout, known, state = looks
    read, parse = [], FileIdentity.parse
    monkeypatch.setattr(FileIdentity, "parse", lambda name: read.append(name) or parse(name))
    for _ in range(3):
        spout.snapshot(known, state)
    assert sorted(read) == sorted(known)


def test_what_is_read_of_names_goes_with_them(looks):
    spout, known, state = looks
    spout.snapshot(known, state)
    few = dict(list(known.items())[:10])
    spout.snapshot(few, state)
    assert spout._follower._cache.identities.keys() == few.keys()
