"""A file of records: what was written is read, whatever happens to file, disk and process meanwhile."""

import os
import subprocess
import sys
import threading
import tracemalloc

import pytest

from pystorm_source.records.record import ComponentProgress, EdgeProgress, PystormProgress, TopologyProgress
from pystorm_source.records.record_file import Begin, RecordFile, last_lines
from pystorm_source.records.record_writer import RecordWriter
from tests.records.samples import progress

BEGIN = Begin(
    topology="Sample",
    run="0123",
    began=1_767_225_600.0,
    process=4711,
    components=(ComponentProgress(name="spout", kind="spout"), ComponentProgress(name="bolt1", tasks=2)),
    edges=(EdgeProgress(source="spout", target="bolt1", grouping="shuffle"), EdgeProgress(source="bolt1")),
)


@pytest.fixture
def writer(tmp_path):
    return RecordWriter(tmp_path, BEGIN)


def read(writer):
    return RecordFile(writer.path).read()


def small(batch, rows=0):
    return PystormProgress(rows=rows, topology=TopologyProgress(batch=batch))


def test_what_was_written_is_read(writer):
    written = [progress(batch) for batch in range(3)]
    for record in written:
        writer.write(record)
    writer.end(1_767_225_660.0)
    run = read(writer)
    assert (run.begin, run.records, run.ended) == (BEGIN, written, 1_767_225_660.0)


def test_the_file_is_named_by_topology_and_run_and_private(writer):
    writer.write(small(0))
    assert writer.path.name == "Sample-0123.jsonl"
    assert writer.path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", ".hidden", "x" * 400, "naïve topology", ""])
def test_any_name_of_a_topology_gives_a_file_in_the_folder(tmp_path, name):
    writer = RecordWriter(tmp_path, Begin(topology=name, run="1"))
    writer.write(small(0))
    (path,) = tmp_path.iterdir()
    assert path == writer.path and path.suffix == ".jsonl" and not path.name.startswith(".")


def test_the_last_line_of_a_micro_batch_counts(writer):
    for record in (small(0, 1), small(1, 2), small(1, 3), small(2, 4)):
        writer.write(record)
    assert [record.rows for record in read(writer).records] == [1, 3, 4]


def test_a_look_reads_what_is_new(writer):
    file = RecordFile(writer.path)
    writer.write(small(0, 1))
    assert [record.rows for record in file.read().records] == [1]
    writer.write(small(0, 2))
    writer.write(small(1, 3))
    assert [record.rows for record in file.read().records] == [2, 3]
    assert file.read().ended is None
    writer.end(5.0)
    assert file.read().ended == 5.0


@pytest.mark.parametrize("line", [b'{"batchId":5,"ro', b"\xff\xfe", b"[1]", b"[" * 100_000, b'{"kind":"other"}', b""])
def test_a_line_that_cannot_be_read_is_passed_over(writer, line):
    writer.write(small(0, 1))
    with writer.path.open("ab") as file:
        file.write(line + b"\n")
    writer.write(small(1, 2))
    assert [record.rows for record in read(writer).records] == [1, 2]


def test_a_line_is_read_when_it_is_whole(writer):
    file = RecordFile(writer.path)
    line = small(0, 7).to_json().encode() + b"\n"
    writer.path.write_bytes(line[:9])
    assert file.read().records == []
    with writer.path.open("ab") as rest:
        rest.write(line[9:])
    assert [record.rows for record in file.read().records] == [7]


def test_a_file_stays_below_its_size_and_keeps_the_newest(tmp_path):
    writer = RecordWriter(tmp_path, BEGIN, most_bytes=50_000)
    follower = RecordFile(writer.path)
    for batch in range(200):
        writer.write(progress(batch))
        assert writer.path.stat().st_size <= 50_000
        assert follower.read().records[-1] == progress(batch)
    run = read(writer)
    kept = [record.topology.batch for record in run.records]
    assert run.begin == BEGIN
    assert kept == list(range(kept[0], 200)) and len(kept) > 3
    assert os.listdir(tmp_path) == [writer.path.name]


def test_replacing_a_file_takes_little_memory(tmp_path):
    most = 2_000_000
    writer = RecordWriter(tmp_path, BEGIN, most_bytes=most)
    size, batch = 0, 0
    tracemalloc.start()
    try:
        while size <= (now := writer.path.stat().st_size if batch else 0):
            size, batch = now, batch + 1
            writer.write(progress(batch))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size > most * 0.9
    assert peak < most / 4
    assert [record.topology.batch for record in read(writer).records][-1] == batch


def test_lines_that_were_replaced_go_first(tmp_path):
    writer = RecordWriter(tmp_path, BEGIN, most_bytes=8_000)
    for batch in range(10):
        for rows in range(30):
            writer.write(small(batch, rows))
    assert [record.rows for record in read(writer).records] == [29] * 10


def test_a_file_that_was_removed_begins_anew(writer):
    writer.write(small(0))
    writer.path.unlink()
    writer.write(small(1, 5))
    run = read(writer)
    assert run.begin == BEGIN
    assert [record.rows for record in run.records] == [5]


def test_a_link_in_its_place_is_not_followed(writer, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    writer.path.symlink_to(victim)
    with pytest.raises(OSError, match="symbolic links"):
        writer.write(small(0))
    assert victim.read_text() == "precious"


def test_a_link_for_the_shorter_file_is_not_followed(tmp_path):
    writer = RecordWriter(tmp_path, BEGIN, most_bytes=1_000)
    victim = tmp_path / "victim"
    victim.write_text("precious")
    writer.path.with_suffix(".new").symlink_to(victim)
    for batch in range(50):
        writer.write(small(batch))
    assert victim.read_text() == "precious"
    assert read(writer).records[-1] == small(49)


FULL = """
import resource, signal, sys
from pathlib import Path
from pystorm_source.records.record_writer import RecordWriter
from tests.records.test_record_file import BEGIN, small
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
writer = RecordWriter(Path(sys.argv[1]), BEGIN)
writer.write(small(0))
size = writer.path.stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, resource.RLIM_INFINITY))
for _ in range(2):
    try:
        writer.write(small(1))
    except OSError as error:
        print(error.errno)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
writer.write(small(2))
"""


def test_a_disk_that_is_full_for_a_while_costs_the_lines_of_that_time(tmp_path):
    done = subprocess.run([sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True)
    assert done.stdout.split() == ["28", "27"], done.stderr  # no space left, then file too large
    (path,) = tmp_path.iterdir()
    assert [record.topology.batch for record in RecordFile(path).read().records] == [0, 2]


def test_the_end_of_a_long_file_is_found_at_once(tmp_path):
    writer = RecordWriter(tmp_path, BEGIN)
    for batch in range(400):
        writer.write(progress(batch))
    writer.end(9.0)
    run = last_lines(writer.path)
    assert (run.begin, run.records, run.ended) == (BEGIN, [progress(399)], 9.0)


def test_the_end_of_a_file_of_one_line_is_that_line(writer, tmp_path):
    writer.write(small(0, 5))
    run = last_lines(writer.path)
    assert (run.begin, run.records, run.ended) == (BEGIN, [small(0, 5)], None)
    (tmp_path / "empty.jsonl").write_text("")
    assert last_lines(tmp_path / "empty.jsonl").records == []


def test_a_reader_beside_the_writer_sees_whole_records_in_order(tmp_path):
    writer = RecordWriter(tmp_path, BEGIN, most_bytes=100_000)
    writer.write(small(0))
    over = threading.Event()

    def write():
        for batch in range(1, 500):
            writer.write(progress(batch))
        over.set()

    thread = threading.Thread(target=write)
    thread.start()
    file = RecordFile(writer.path)
    seen = []
    while not over.is_set() or seen[-1] != 499:
        seen.append(file.read().records[-1].topology.batch)
    thread.join()
    assert seen == sorted(seen)
