"""The partitions of a journal, and what tasks do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystorm_source.errors import CheckpointError
from pystorm_source.journal.positions import JournalPositions, tasks_of


def nowhere(share):
    return []


def snapshot(known, has_readers, begin=0, permits=10):
    """Partition → earliest and latest; and what is retired."""
    found = JournalPositions.of("s", known).snapshot(known, begin, permits, has_readers, {})
    return dict(found.heads), set(found.retired)


@pytest.mark.parametrize(
    ("known", "has_readers", "heads", "retired"),
    [
        ({"j": 30}, False, {"j": (0, 40)}, set()),
        ({"j": 30}, True, {"j.intake": (30, 40), "j.read": (30, 40)}, {"j"}),
        ({"j.intake": 30, "j.read": 20}, True, {"j.intake": (0, 40), "j.read": (0, 40)}, set()),
        ({"j.intake": 30, "j.read": 20}, False, {"j": (30, 30), "j.read": (0, 30)}, {"j.intake"}),
        ({"j": 30, "j.read": 20}, False, {"j": (0, 30), "j.read": (0, 30)}, set()),
        ({"j": 30, "j.read": 20}, True, {"j.intake": (30, 40), "j.read": (0, 40)}, {"j"}),
        ({"j.intake": 30, "j.read": 30}, False, {"j": (30, 40)}, {"j.intake", "j.read"}),
        ({"j": 30, "j.read": 30}, False, {"j": (0, 40)}, {"j.read"}),
    ],
)
def test_each_state_goes_on_with_and_without_readers(known, has_readers, heads, retired):
    assert snapshot(known, has_readers) == (heads, retired)


def test_what_a_journal_has_lost_is_shown_as_lost():
    heads, _ = snapshot({"j.intake": 30, "j.read": 20}, True, begin=50)
    assert heads == {"j.intake": (50, 60), "j.read": (50, 60)}


def test_two_journals_are_refused():
    with pytest.raises(CheckpointError, match="several journals of spout 's'"):
        JournalPositions.of("s", {"j": 1, "k.read": 2})


def test_the_polling_task_comes_first():
    assert tasks_of([("j.intake", 20, 30), ("j.read", 10, 20)], lambda share: [15]) == [
        ("j.intake", 20, 30),
        ("j.read", 10, 15),
        ("j.read", 15, 20),
    ]


def test_what_is_polled_and_read_in_one_micro_batch_has_one_task():
    assert tasks_of([("j.intake", 20, 30), ("j.read", 10, 30)], nowhere) == [("j", 20, 30), ("j.read", 10, 20)]
    assert tasks_of([("j.intake", 20, 30), ("j.read", 20, 30)], nowhere) == [("j", 20, 30)]


def test_other_micro_batches_are_as_they_are():
    for shares in ([("j", 20, 30)], [("j.intake", 0, 10)], [("j.read", 10, 20)], []):
        assert tasks_of(shares, nowhere) == shares


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(["behind", "together"])), max_size=12))
def test_every_slice_is_polled_once_and_read_once(runs):
    """Any sequence of micro-batches with and without readers, as the driver plans them."""
    known, polled, emitted = {"j": 0}, [], []
    for has_readers, kind in runs:
        heads, retired = snapshot(known, has_readers)
        ends, shares = {}, []
        for name, (earliest, latest) in sorted(heads.items()):
            start = known.get(name, earliest)
            head = latest
            if name == "j.read" and "j.intake" in heads and kind == "behind":
                head = known.get("j.intake", heads["j.intake"][0])
            ends[name] = head
            if start < head:
                shares.append((name, start, head))
        assert set(known) - retired <= set(ends)
        for partition, start, end in tasks_of(shares, nowhere):
            offsets = range(start, end)
            if not partition.endswith(".read"):
                polled += offsets
            if not partition.endswith(".intake"):
                emitted += offsets
        known = ends
    at = JournalPositions.of("s", known)
    assert sorted(polled) == list(range(at.polled))
    assert sorted(emitted) == list(range(at.read))
