"""Files of equal text: which is a copy that rotation made, and which a file of its own. Each is read once."""

import gzip
import os
import shutil

import pytest

from pystorm_source.errors import DataLossError
from pystorm_source.spouts import FilesSpout
from pystorm_source.spouts.files.identity.text import FileText
from pystorm_source.spouts.files.listing.heirs import Heirs
from tests.spouts.drive import Driven, Query

HOUR = 3600.0
SHORT = ["started", "stopped"]
LONG = [f"{n},the same text" for n in range(200)]
both_lengths = pytest.mark.parametrize("lines", [SHORT, LONG], ids=["short", "long"])


@pytest.fixture
def query(tmp_path, clock):
    return made(tmp_path, clock)


def made(path, clock, **options):
    return Query(Driven(FilesSpout.spec(path=path), {"files.recursive": "true", **options}, clock))


def put(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a") as file:
        file.write("".join(line + "\n" for line in lines))


def pack(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(line + "\n" for line in lines).encode()))


def words(rows):
    return [word for (word,) in rows]


def lenient(query, path, clock):
    """The same query, restarted with failOnDataLoss=false."""
    other = made(path, clock, failOnDataLoss="false")
    other.known, other.state = dict(query.known), dict(query.state)
    return other


@pytest.mark.parametrize("is_there", [True, False], ids=["there", "removed"])
@pytest.mark.parametrize("name", ["app.log.gz", "app.log.1.gz"])
def test_a_short_gzip_file_of_another_directory_is_read(query, tmp_path, name, is_there):
    """So may begin any log of its kind."""
    put(tmp_path / "a" / "app.log", SHORT)
    query.drain()
    pack(tmp_path / "b" / name, SHORT)
    if not is_there:
        os.remove(tmp_path / "a" / "app.log")
    assert words(query.drain()) == SHORT
    assert query.drain() == []


@pytest.mark.parametrize("is_there", [True, False], ids=["there", "removed"])
@pytest.mark.parametrize("name", ["app.log.gz", "app.log.1.gz"])
def test_a_long_gzip_file_of_another_directory_is_an_error_or_is_read(query, tmp_path, clock, name, is_there):
    put(tmp_path / "a" / "app.log", LONG)
    query.drain()
    pack(tmp_path / "b" / name, LONG)
    if not is_there:
        os.remove(tmp_path / "a" / "app.log")
    with pytest.raises(DataLossError, match=rf"b/{name}.*its name does not say which.*a/app\.log"):
        query.plan()
    other = lenient(query, tmp_path, clock)
    assert words(other.drain()) == LONG
    assert other.drain() == []


@pytest.mark.parametrize("is_there", [True, False], ids=["there", "removed"])
@both_lengths
def test_deliveries_of_equal_text_in_dated_directories_are_read(query, tmp_path, lines, is_there):
    put(tmp_path / "2024-02-28" / "orders.csv", lines)
    query.drain()
    pack(tmp_path / "2024-02-29" / "orders.csv.gz", lines)
    if not is_there:
        os.remove(tmp_path / "2024-02-28" / "orders.csv")
    assert words(query.drain()) == lines


@both_lengths
def test_a_file_of_another_name_and_directory_is_read(query, tmp_path, lines):
    put(tmp_path / "a" / "orders.csv", lines)
    query.drain()
    pack(tmp_path / "b" / "customers.csv.gz", lines)
    assert words(query.drain()) == lines


@pytest.mark.parametrize("name", ["b/app.log.1", "a/app-42.log"])
def test_a_short_file_is_read_though_another_one_begins_with_its_text(query, tmp_path, name):
    put(tmp_path / "a" / "app.log", [*SHORT, "more"])
    put(tmp_path / name, SHORT)
    assert sorted(words(query.drain())) == sorted([*SHORT, *SHORT, "more"])


@pytest.mark.parametrize("name", ["orders-42", "orders_7"])
def test_a_number_behind_a_dash_may_belong_to_the_name(query, tmp_path, name):
    put(tmp_path / "orders", SHORT)
    put(tmp_path / name, SHORT)
    assert sorted(words(query.drain())) == sorted(SHORT * 2)


@pytest.mark.parametrize("name", ["b/app.log.1", "a/app-42.log"])
def test_a_long_file_waits_until_it_differs_from_one_that_it_may_be_a_copy_of(query, tmp_path, name):
    put(tmp_path / "a" / "app.log", [*LONG, "more"])
    put(tmp_path / name, LONG)
    assert words(query.drain()) == [*LONG, "more"]
    put(tmp_path / name, ["other"])
    query.restart()
    assert words(query.drain()) == [*LONG, "other"]


@pytest.mark.parametrize("name", ["b/app.log.1", "a/app-42.log"])
def test_a_long_file_that_never_differs_is_an_error_or_is_read(query, tmp_path, clock, name):
    put(tmp_path / "a" / "app.log", LONG)
    put(tmp_path / name, LONG)
    assert words(query.drain()) == LONG
    put(tmp_path / "other.log", ["meanwhile"])
    query.drain()
    clock.advance(HOUR + 1)
    with pytest.raises(DataLossError, match=r"its name does not say which.*remove it"):
        query.plan()
    assert words(lenient(query, tmp_path, clock).drain()) == LONG


@pytest.mark.parametrize("name", ["b/app.log.1", "a/app-42.log"])
def test_a_long_file_that_waits_is_not_lost_if_the_other_one_is_removed(query, tmp_path, clock, name):
    put(tmp_path / "a" / "app.log", LONG)
    put(tmp_path / name, LONG)
    put(tmp_path / "a" / "stays.log", ["stays"])
    query.drain()
    os.remove(tmp_path / "a" / "app.log")
    put(tmp_path / "a" / "stays.log", ["longer"])
    query.restart()
    assert sorted(words(query.drain())) == sorted([*LONG, "longer"])


@both_lengths
def test_rotation_into_a_directory_below_is_followed(query, tmp_path, lines):
    """logrotate's olddir, with compress."""
    put(tmp_path / "app.log", lines)
    query.drain()
    put(tmp_path / "app.log", ["last"])
    pack(tmp_path / "old" / "app.log.1.gz", [*lines, "last"])
    os.remove(tmp_path / "app.log")
    put(tmp_path / "app.log", ["new"])
    assert sorted(words(query.drain())) == ["last", "new"]


@both_lengths
def test_a_copy_into_a_directory_below_waits_and_is_read_once(query, tmp_path, lines):
    """logrotate's olddir, with copytruncate."""
    log = tmp_path / "app.log"
    put(log, lines)
    query.drain()
    (tmp_path / "old").mkdir()
    shutil.copyfile(log, tmp_path / "old" / "app.log.1")
    assert query.drain() == []
    os.truncate(log, 0)
    put(log, ["new"])
    query.restart()
    assert words(query.drain()) == ["new"]


@both_lengths
def test_files_of_equal_text_that_rotate_at_once_in_many_directories_are_read_once(query, tmp_path, lines):
    for host in ("a", "b", "c"):
        put(tmp_path / host / "app.log", lines)
    assert len(query.drain()) == 3 * len(lines)
    for host in ("b", "a", "c"):
        os.remove(tmp_path / host / "app.log")
        pack(tmp_path / host / "app.log.1.gz", [*lines, f"last of {host}"])
    put(tmp_path / "app.log", ["above"])
    assert sorted(words(query.drain())) == ["above", "last of a", "last of b", "last of c"]


def test_a_task_takes_no_file_of_another_directory_for_a_copy(query, tmp_path):
    put(tmp_path / "a" / "app.log", ["started", "one", "two"])
    ranges = query.plan()
    os.remove(tmp_path / "a" / "app.log")
    put(tmp_path / "b" / "app.log.1", ["started", "six", "ten"])
    with pytest.raises(DataLossError, match=r"a/app\.log"):
        query.read(ranges)


def counted(monkeypatch, owner, name):
    """A list that has an element for each call."""
    calls, real = [], getattr(owner, name)

    def count(*arguments, **named):
        calls.append(None)
        return real(*arguments, **named)

    monkeypatch.setattr(owner, name, count)
    return calls


def test_copies_are_compared_in_proportion_with_files_that_begin_alike(tmp_path, clock, monkeypatch):
    opened = counted(monkeypatch, FileText, "__init__")

    def opens(number):
        folder = tmp_path / str(number)
        for n in range(number):
            put(folder / f"{n}.log", [*LONG, str(n)])
        query = made(folder, clock)
        query.drain()
        for n in range(number):
            pack(folder / f"copy-of-{n}.gz", [*LONG, str(n + number // 2)])
        opened.clear()
        assert len(query.plan()) == number // 2  # the others are copies
        return len(opened)

    few, many = opens(20), opens(80)
    assert many <= 5 * few


def test_vanished_files_of_one_text_are_looked_for_in_proportion(tmp_path, clock, monkeypatch):
    asked = counted(monkeypatch, Heirs, "_fits_times"), counted(monkeypatch, Heirs, "_may_inherit")

    def asks(number):
        folder = tmp_path / str(number)
        for n in range(number):
            put(folder / f"app.log.{n}", LONG)
        query = made(folder, clock)
        query.drain()
        for n in range(number):
            os.remove(folder / f"app.log.{n}")
            pack(folder / f"app.log.{n + 1000}.gz", [*LONG, f"last of {n}"])
        for calls in asked:
            calls.clear()
        assert len(query.drain()) == number
        return sum(map(len, asked))

    few, many = asks(20), asks(80)
    assert many <= 5 * few
