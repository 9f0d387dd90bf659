"""States of many keys in one value of the store."""

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from random import Random
from threading import Barrier, Lock

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cython_core.states.states_base import part_of_key
from pystorm_source.api.state_values import values_of
from pystorm_source.errors import OptionError
from pystorm_source.operator.state_pages import BYTES_OF_PAGE, KEYS_OF_PAGE, PageForm, Size, StatePages
from tests.sizes import sized
from tests.stages.random_states import TYPES, exact_value, same


class Store:
    """Spark's map of pages, which counts what it is asked."""

    def __init__(self):
        self.pages = {}
        self.gets = self.puts = 0

    def getValue(self, key):
        self.gets += 1
        page = self.pages.get(key)
        return None if page is None else (page, None, None)

    def updateValue(self, key, value):
        self.puts += 1
        (self.pages[key], *others) = value
        assert others == [None, None]

    def removeKey(self, key):
        del self.pages[key]


WORD, COUNT = (pa.string(),), (pa.int64(),)


def form_of(key=WORD, state=COUNT):
    return PageForm(key, state)


def run(store, size, change, form=None):
    """The size after a micro-batch."""
    pages = StatePages(form or form_of(), store, size, Lock())
    change(pages)
    return pages.flush()


def word(number):
    return (f"visitor-{number:06d}",)


def put_all(numbers, value=0):
    def change(pages):
        for number in numbers:
            assert pages.get(word(number)) is None or value
            pages.put(word(number), (number + value,))

    return change


def found(store, size, numbers, form=None):
    pages = StatePages(form or form_of(), store, size, Lock())
    return [pages.get(word(number)) for number in numbers]


@pytest.mark.parametrize("step", [20_000, 700, 1])
def test_pages_grow_with_their_keys_and_lose_none(step):
    keys = 20_000 if step > 1 else 500
    store, size = Store(), Size()
    for start in range(0, keys, step):
        size = run(store, size, put_all(range(start, min(start + step, keys))))
    assert (size.keys, size.pages) == (keys, max(1, keys // KEYS_OF_PAGE))
    assert size.bytes == sum(map(len, store.pages.values()))
    assert found(store, size, range(keys)) == [(number,) for number in range(keys)]
    counts = [form_of().batch(page).num_rows for page in store.pages.values()]
    assert sum(counts) == keys
    assert max(counts) < 3 * KEYS_OF_PAGE


def test_a_micro_batch_reads_and_writes_the_pages_of_its_keys_alone():
    store = Store()
    size = run(store, Size(), put_all(range(50_000)))
    store.gets = store.puts = 0
    assert run(store, size, put_all(range(40), value=7)) == size
    assert store.gets == store.puts <= 40
    assert found(store, size, [39, 40]) == [(46,), (40,)]
    store.gets = store.puts = 0
    found(store, size, range(40))
    assert run(store, size, lambda pages: pages.get(word(1))) == size
    assert store.puts == 0


def test_removed_keys_are_gone_and_with_the_last_one_its_page():
    store = Store()
    size = run(store, Size(), put_all(range(1000)))

    def remove(pages):
        for number in range(1000):
            if number != 500:
                pages.remove(word(number))

    size = run(store, size, remove)
    assert len(store.pages) == 1
    assert found(store, size, [499, 500]) == [None, (500,)]
    size = run(store, size, lambda pages: pages.remove(word(500)))
    assert (store.pages, size.keys, size.bytes) == ({}, 0, 0)
    size = run(store, size, put_all(range(10)))
    assert found(store, size, range(10)) == [(number,) for number in range(10)]


def test_large_states_have_pages_of_few_keys():
    form, store = form_of(state=(pa.binary(),)), Store()
    large = Random(3).randbytes(BYTES_OF_PAGE // 2)

    def change(pages):
        for number in range(100):
            pages.put(word(number), (large,))

    size = run(store, Size(), change, form)
    assert 50 <= size.pages <= 100
    assert max(map(len, store.pages.values())) < 8 * BYTES_OF_PAGE
    assert found(store, size, range(100), form) == [(large,)] * 100


class MeetingLock:
    """A lock before which two threads meet."""

    def __init__(self):
        self.lock, self.meeting = Lock(), Barrier(2, timeout=20)

    def __enter__(self):
        self.meeting.wait()
        self.lock.acquire()

    def __exit__(self, *_):
        self.lock.release()


def test_a_page_that_two_threads_miss_at_once_is_read_once():
    """Otherwise each thread would change its own copy, and the last copy written would win."""
    store = Store()
    size = run(store, Size(), put_all([1, 2]))
    store.gets = 0
    pages = StatePages(form_of(), store, size, MeetingLock())
    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(pages.get, [word(1), word(2)])) == [(1,), (2,)]
    assert store.gets == 1
    pages.put(word(1), (10,))
    pages.put(word(2), (20,))
    assert found(store, pages.flush(), [1, 2]) == [(10,), (20,)]


def test_a_page_of_other_fields_is_refused():
    store = Store()
    size = run(store, Size(), put_all([1]))
    for other in (form_of(state=(pa.float64(),)), form_of(state=(pa.int64(), pa.int64())), form_of(key=(pa.binary(),))):
        with pytest.raises(OptionError, match="the checkpoint has states of other fields.*Given: "):
            found(store, size, [1], other)


KEYS = {
    "string": lambda chance: chance.choice(["", "a", "€", "x" * 99]),
    "long": lambda chance: chance.randrange(-(2**63), 2**63),
    "double": lambda chance: chance.choice([0.0, -0.0, float("nan"), 1.5, float("inf")]),
    "decimal(10,2)": lambda chance: Decimal(chance.randrange(-999, 999)).scaleb(-2),
    "boolean": lambda chance: chance.random() < 0.5,
}
KEY_TYPES = (pa.string(), pa.int64(), pa.float64(), pa.decimal128(10, 2), pa.bool_())


@given(seed=st.integers(min_value=0))
@settings(max_examples=sized(200))
def test_pages_give_back_what_a_dict_does(seed):
    """Keys and states of all types, nulls included, over micro-batches that add, change and remove."""
    chance = Random(seed)
    form = form_of(KEY_TYPES, tuple(TYPES.values()))
    store, size, model = Store(), Size(), {}
    for _ in range(3):
        pages = StatePages(form, store, size, Lock())
        for _ in range(chance.choice([1, 20, 200])):
            key = tuple(None if chance.random() < 0.2 else part_of_key(made(chance)) for made in KEYS.values())
            assert (pages.get(key) is None) == (key not in model)
            if key in model and chance.random() < 0.3:
                pages.remove(key)
                del model[key]
            else:
                model[key] = tuple(
                    None if chance.random() < 0.3 else exact_value(chance, kind) for kind in TYPES.values()
                )
                pages.put(key, model[key])
        size = pages.flush()
    pages = StatePages(form, store, size, Lock())
    assert size.keys == len(model)
    for key, values in model.items():
        stored = zip(pages.get(key), TYPES.values(), strict=True)
        assert same([None if value is None else values_of(kind).read(value) for value, kind in stored], list(values))
