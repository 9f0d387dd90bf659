import random

import pyarrow as pa
import pytest

from pystorm_source.journal.rows import JournalRows
from pystorm_source.journal.segment import SegmentWriter, read_segment
from pystorm_source.journal.store import LocalStore
from tests.spouts.mutations import COUNT, mutated

SCHEMAS = {"default": pa.schema([("word", pa.string()), ("n", pa.int64())]), "side": pa.schema([("x", pa.float64())])}


def written(folder, groups):
    """The bytes of a segment of these groups of (stream, values), and where its groups end."""
    rows = JournalRows("words", SCHEMAS)
    writer = SegmentWriter("segment", LocalStore(folder).append("segment"), rows.schemas)
    ends, position = [], 0
    for group in groups:
        for stream, values in group:
            rows.append(values, stream, None, position)
            position += 1
        writer.write(rows.take(), has_ids=False)
        ends.append(writer.bytes)
    writer.close(True)
    return (folder / "segment").read_bytes(), ends


def emits(content):
    rows = JournalRows("words", SCHEMAS)
    return [[(emit[1], emit[0]) for emit in rows.emits(group)] for group in content.groups]


GROUPS = [
    [("default", ("the", 1)), ("side", (0.5,)), ("default", ("cow", 2))],
    [("side", (1.5,)), ("side", (None,))],
    [("default", (None, None))] * 3,
]


def test_groups_come_back_in_the_order_of_their_emits(tmp_path):
    data, ends = written(tmp_path, GROUPS)
    content = read_segment(data, "segment")
    assert emits(content) == GROUPS
    assert [group.end for group in content.groups] == ends
    assert content.damage == ""
    assert ends[-1] == len(data)


def test_a_tail_torn_anywhere_costs_its_group_and_no_other(tmp_path):
    data, ends = written(tmp_path, GROUPS)
    for size in range(len(data)):
        content = read_segment(data[:size], "segment")
        whole = [end for end in ends if end <= size]
        assert emits(content) == GROUPS[: len(whole)]
        if content.schemas and size not in ends and size > ends[0]:
            assert content.damage


def test_the_payloads_of_a_stream_are_an_arrow_stream(tmp_path):
    data, _ = written(tmp_path, [[("side", (float(i),)) for i in range(3)]])
    content = read_segment(data, "segment")
    schema, batch = content.schemas[1], content.groups[0].batches[0].batch
    whole = schema.serialize().to_pybytes() + batch.serialize().to_pybytes()
    assert pa.ipc.open_stream(whole).read_all().column("x").to_pylist() == [0.0, 1.0, 2.0]


def test_bytes_that_changed_are_cut_not_believed(tmp_path):
    """Whatever is done to a segment: what is read of it is a beginning of what was written."""
    data, _ = written(tmp_path, GROUPS)
    rng = random.Random(20)
    for _ in range(COUNT):
        changed = mutated(data, rng)
        content = read_segment(changed, "segment")
        found = emits(content)
        assert found == GROUPS[: len(found)]
        assert content.damage or data.startswith(changed)


def test_frames_of_another_segment_do_not_fit_in(tmp_path):
    one, one_ends = written(tmp_path / "one", GROUPS)
    other, other_ends = written(tmp_path / "other", [GROUPS[2], GROUPS[1]])
    content = read_segment(one[: one_ends[0]] + other[other_ends[0] :], "segment")
    # Two frames of schemas, two of the first group: the other's second group has another number.
    assert emits(content) == GROUPS[:1]
    assert "a frame is missing" in content.damage


def test_another_segment_in_its_place_is_not_believed(tmp_path):
    """A backup that went to the wrong name: the same size, the same frames, other tuples."""
    data, _ = written(tmp_path, GROUPS)
    assert read_segment(data, "segment").damage == ""
    content = read_segment(data, "other")
    assert content.groups == []
    assert "CRC does not fit" in content.damage


@pytest.mark.parametrize("data", [b"", b"PSJ1", b"\0" * 4096, bytes(range(256)) * 8])
def test_what_is_no_segment_holds_nothing(data):
    content = read_segment(data, "segment")
    assert not content.groups
    assert not data or content.damage
