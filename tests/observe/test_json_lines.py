"""Records as lines of a file."""

from pystorm_source.observe import JsonLines
from pystorm_source.records.record import PystormProgress
from tests.records.samples import progress


def test_each_record_is_a_line(tmp_path):
    records = [progress(batch) for batch in range(3)]
    write = JsonLines(tmp_path / "progress.jsonl")
    for record in records:
        write(record)
    lines = (tmp_path / "progress.jsonl").read_text().splitlines()
    assert [PystormProgress.from_json(line) for line in lines] == records


def test_the_file_may_be_moved_away(tmp_path):
    write = JsonLines(str(tmp_path / "progress.jsonl"))
    write(progress(0))
    (tmp_path / "progress.jsonl").rename(tmp_path / "progress.jsonl.1")
    write(progress(1))
    assert len((tmp_path / "progress.jsonl").read_text().splitlines()) == 1
