"""A look at a folder of many known files does for each of them what it has to, and nothing besides."""

import gc
import os
import random
from contextlib import suppress

import pytest

from pystorm_source.errors import OptionError
from pystorm_source.spouts import FilesSpout
from pystorm_source.spouts.files.identity import head
from pystorm_source.spouts.files.identity.catalog import FileCatalog
from pystorm_source.spouts.files.identity.identity import FileIdentity
from pystorm_source.spouts.files.identity.text import FileText
from pystorm_source.spouts.files.listing.round import Round
from pystorm_source.testing.driven import Driven

FILES = 3000


@pytest.fixture
def looks(tmp_path, monkeypatch):
    """A driver's spout that has seen all files, and what its next look is given."""
    monkeypatch.setattr(head, "SETTLED_NS", 0)  # not a second of sleep: nothing else writes here
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


@pytest.fixture
def opened(monkeypatch):
    """The names of the files that are opened."""
    names, init = [], FileText.__init__
    monkeypatch.setattr(
        FileText, "__init__", lambda self, path, *rest: names.append(os.path.basename(path)) or init(self, path, *rest)
    )
    return names


def test_a_known_file_is_opened_again_only_once_it_changed(looks, tmp_path, opened):
    spout, known, state = looks
    (tmp_path / "new.log").write_text("new\n")
    with (tmp_path / "7.log").open("a") as grown:
        grown.write("more\n")
    for _ in range(3):
        found = spout.snapshot(known, state)
        known, state = {name: end for name, (_, end) in found.heads.items()}, found.state
    assert sorted(opened) == ["7.log", "new.log"]
    assert len(known) == FILES + 1


def test_a_file_that_was_looked_at_as_it_changed_is_opened_again(tmp_path, opened, monkeypatch):
    """Its ctime may not tell of a second change within the same tick of the clock."""
    monkeypatch.setattr(head, "SETTLED_NS", 3600 * 10**9)
    (tmp_path / "a.log").write_text("one\n")
    spout = Driven(FilesSpout.spec(path=tmp_path)).driver
    first = spout.snapshot({}, {})
    before = len(opened)
    spout.snapshot({name: end for name, (_, end) in first.heads.items()}, first.state)
    assert len(opened) == before + 1


def test_files_at_rest_are_passed_by(looks, tmp_path, monkeypatch):
    spout, known, state = looks
    found = spout.snapshot(known, state)
    followed, follow = [], Round._follow
    monkeypatch.setattr(
        Round,
        "_follow",
        lambda self, file, *rest, **more: followed.append(file.name) or follow(self, file, *rest, **more),
    )
    (tmp_path / "new.log").write_text("new\n")
    again = spout.snapshot(known, state)
    assert followed == []
    assert len(again.heads) == FILES + 1
    assert {name: again.heads[name] for name in found.heads} == found.heads
    offsets = {name: end for name, (_, end) in again.heads.items()}
    assert spout.snapshot(offsets, again.state) == Driven(FilesSpout.spec(path=tmp_path)).driver.snapshot(
        offsets, again.state
    )


def test_a_look_that_misses_no_file_lists_once(looks, tmp_path, monkeypatch):
    spout, known, state = looks
    listed, scan = [], FileCatalog.scan
    monkeypatch.setattr(FileCatalog, "scan", lambda self: listed.append(self) or scan(self))
    (tmp_path / "new.log").write_text("new\n")
    assert len(spout.snapshot(known, state).heads) == FILES + 1
    assert len(listed) == 1


@pytest.mark.parametrize("event", ["renamed", "removed", "truncated", "replaced", "linked", "inode of another"])
def test_a_cache_of_files_at_rest_changes_no_answer(tmp_path, monkeypatch, event):
    """The same events are seen by a spout that knows the files at rest, and by one that has just begun."""
    options = {"failOnDataLoss": False}
    for name in "abc":
        (tmp_path / f"{name}.log").write_text(f"{name} one\n" * 300)
    spec = FilesSpout.spec(path=f"{tmp_path}/*", config=options)
    spout = Driven(spec).driver
    found = spout.snapshot({}, {})
    for _ in range(3):
        known = {name: end for name, (_, end) in found.heads.items() if name not in found.retired}
        found = spout.snapshot(known, found.state)
    b, c = tmp_path / "b.log", tmp_path / "c.log"
    if event == "renamed":
        b.rename(tmp_path / "b.log.1")
    elif event == "removed":
        b.unlink()
    elif event == "truncated":
        (tmp_path / "b.log.1").write_bytes(b.read_bytes())
        b.write_text("other\n")
    elif event == "replaced":
        b.rename(c)
    elif event == "linked":
        os.link(b, tmp_path / "a-link")
    else:
        found.state["waiting " + f"{b.stat().st_ino:x}"] = 0
    for _ in range(3):
        known = {name: end for name, (_, end) in found.heads.items() if name not in found.retired}
        fresh = Driven(spec).driver.snapshot(known, found.state)
        found = spout.snapshot(known, found.state)
        assert found == fresh
        assert list(found.heads) == list(fresh.heads)


def test_a_listing_is_what_a_new_catalog_lists(tmp_path):
    """Files come, go, grow, are renamed, linked and replaced, folders too, between listings that reuse entries."""
    rng = random.Random(3)
    for folder in "abc":
        (tmp_path / folder).mkdir()
    for given in (str(tmp_path), f"{tmp_path}/**/*.log", f"{tmp_path}/**/?/**/*"):
        for by_path in (False, True):
            catalog = FileCatalog(given, True, True, by_path)
            for _ in range(120):
                one, other = (tmp_path / rng.choice("abc") / f"{rng.randrange(6)}.log" for _ in range(2))
                with suppress(OSError):  # not there, there already, or a link to itself
                    match rng.randrange(7):
                        case 0 | 1:
                            with one.open("a") as file:
                                file.write("line\n")
                        case 2:
                            one.rename(other)
                        case 3:
                            os.link(one, other)
                        case 4:
                            other.symlink_to(one)
                        case 5:
                            one.unlink()
                        case _:
                            one.parent.rename(tmp_path / "d")
                            (tmp_path / "d").rename(one.parent)
                found = catalog.scan()
                assert found == FileCatalog(given, True, True, by_path).scan()
                assert found == catalog.scan()


@pytest.mark.parametrize(
    ("glob", "names"),
    [
        ("{a,b}/*.log", ["a/1.log", "b/2.log"]),
        ("{a,b}/{1,2}.{log,txt}", ["a/1.log", "b/2.log", "b/2.txt"]),
        ("**/{1,.h}*", ["a/1.log", "b/.h.log", "c/1,.log"]),
        ("a/{1,2{,x}}.log", ["a/1.log"]),
        ("[^ab]/[^{]*.log", ["c/1,.log"]),
        ("c/{day}*.log", ["c/{day}.log"]),
        ("c/{day}.log", ["c/{day}.log"]),
        ("c/1,.log", ["c/1,.log"]),
    ],
)
def test_braces_are_a_choice_as_in_a_shell(tmp_path, glob, names):
    for name in ("a/1.log", "b/2.log", "b/2.txt", "b/.h.log", "c/{day}.log", "c/1,.log"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = [os.path.relpath(file.path, tmp_path) for file in FileCatalog(f"{tmp_path}/{glob}").scan()]
    assert sorted(found) == sorted(names)


def test_a_choice_of_several_folders_is_an_error(tmp_path):
    with pytest.raises(OptionError, match=r"inside one name.*'/logs/\{a/b,c\}/x'"):
        FileCatalog("/logs/{a/b,c}/x")
