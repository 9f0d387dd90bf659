"""The cases that Storm holds Trident's states to, told anew: an opaque value, both maps, a map that forgets keys.

A batch here begins and ends as Storm's ``beginCommit`` and ``commit`` do.
"""

from operator import add

import pytest

from pystorm_source.errors import CheckpointError
from pystorm_source.states import Entry, MemoryStore, OpaqueMapState, TransactionalMapState

SEEN_BY = {100: "v1", 9: "v1", 8: "v0"}


@pytest.fixture
def opaque():
    return OpaqueMapState(MemoryStore())


@pytest.fixture
def transactional():
    return TransactionalMapState(MemoryStore())


def count(batch, many):
    return batch.aggregate({"a": many}, add)["a"]


def with_value_of_batch_8():
    state = OpaqueMapState(MemoryStore())
    state.store.multi_put({"a": Entry('"v1"', 8, '"v0"')})
    return state


@pytest.mark.parametrize("batch_id", SEEN_BY)
def test_an_opaque_value_as_a_batch_sees_it(batch_id):
    with with_value_of_batch_8().batch(batch_id) as batch:
        assert batch.get("a") == SEEN_BY[batch_id]


def test_an_opaque_value_outside_of_batches_is_the_newest():
    assert with_value_of_batch_8().get("a") == "v1"


def test_an_opaque_value_of_a_later_batch_is_refused():
    with (
        pytest.raises(CheckpointError, match="batch 8 wrote key 'a', and this is batch 7"),
        with_value_of_batch_8().batch(7) as batch,
    ):
        batch.get("a")


@pytest.mark.parametrize(("batch_id", "previous"), [(8, '"v0"'), (9, '"v1"')])
def test_an_update_of_an_opaque_value_keeps_the_value_before_the_batch(batch_id, previous):
    state = with_value_of_batch_8()
    state.update(batch_id, {"a": lambda stored: "v2"})
    assert state.store.entries == {"a": Entry('"v2"', batch_id, previous)}


def test_an_opaque_map(opaque):
    with opaque.batch(1) as batch:
        assert batch.get("a") is None
        assert (count(batch, 1), batch.get("a")) == (1, 1)
        assert (count(batch, 2), batch.get("a")) == (3, 3)
    with opaque.batch(1) as batch:
        assert batch.get("a") is None
        assert count(batch, 2) == 2
    with opaque.batch(2) as batch:
        assert batch.get("a") == 2
        assert count(batch, 3) == 5
        assert count(batch, 1) == 6


def test_a_transactional_map(transactional):
    with transactional.batch(1) as batch:
        assert batch.get("a") is None
        assert count(batch, 1) == 1
        assert count(batch, 2) == 3
    with transactional.batch(1) as batch:
        assert batch.get("a") == 3
        assert count(batch, 1) == 3
        assert count(batch, 2) == 3
    with transactional.batch(2) as batch:
        assert batch.get("a") == 3
        assert count(batch, 3) == 6
        assert count(batch, 1) == 7


def test_a_removed_key_comes_back_if_its_batch_does(opaque):
    with opaque.batch(1) as batch:
        batch.put("a", 1)
        batch.put("b", 2)
    for _ in range(2):
        with opaque.batch(2) as batch:
            assert batch.multi_get(["a", "b"]) == [1, 2]
            batch.remove(["a"])
            assert batch.multi_get(["a", "b"]) == [None, 2]
    with opaque.batch(3) as batch:
        assert batch.multi_get(["a", "b"]) == [None, 2]


def test_a_transactional_state_refuses_a_later_batch_where_storm_lets_it_pass(transactional):
    """Storm's map compares for equality alone, so that a new checkpoint would count everything twice, in silence."""
    transactional.aggregate(5, {"a": 1}, add)
    with pytest.raises(CheckpointError, match="the state is ahead of the query"):
        transactional.aggregate(4, {"a": 1}, add)
