"""What becomes of a spout's tuple that has failed: again, after how long, and as which dead letter."""

import datetime
import json
import pickle
from random import Random

import pytest

from pystorm_source.clock import ManualClock
from pystorm_source.options import EngineOptions, parse
from pystorm_source.worker.failure import GivenUp, tuple_failed
from pystorm_source.worker.retries import Retries

pytestmark = pytest.mark.inline  # nothing here is scheduled

VALUES = (b"a", 5)
BROKE = ValueError("it broke")
BLAME = ("split", 3, "process", None, BROKE)


class Wired:
    """The retries of a task, with what they emit and warn of."""

    def __init__(self, read=True, chance=None, **options):
        self.rows, self.warnings = [], []
        options = parse(EngineOptions, {f"topology.{key.replace('_', '.')}": value for key, value in options.items()})
        self.retries = Retries("words", 1, options, ManualClock(86_400.5), self.send, self.warn, chance=chance)
        self.read = read

    def send(self, row):
        self.rows.append(row)
        return self.read

    def warn(self, what, text):
        self.warnings.append((what, text))

    def again(self, attempts=4, blame=BLAME, values=VALUES, offset=7, stream=None):
        return self.retries.again(values, stream, offset, attempts, blame)

    @property
    def counts(self):
        return self.retries.retries, self.retries.dead_letters, self.retries.dropped


def test_three_retries_at_once_where_nobody_asks_for_more():
    wired = Wired(dead_letter="drop")
    assert [wired.again(n) for n in (1, 2, 3, 4)] == [0, 0, 0, -1]
    assert wired.counts == (3, 1, 1)


def test_no_retry():
    assert Wired(max_spout_retries=0, dead_letter="drop").again(1) == -1


@pytest.mark.parametrize(
    ("millis", "seconds"),
    [(0, [0, 0, 0]), (1, [0.001, 0.002, 0.004]), (20_000, [20, 40, 60]), (60_000, [60, 60, 60])],
)
def test_the_back_off_doubles_up_to_a_minute(millis, seconds):
    wired = Wired(max_spout_retries=2_000_000_000, spout_retry_backoff_millis=millis)
    for n, least in zip((1, 2, 3, 1_999_999_999), [*seconds, 60 if millis else 0], strict=True):
        assert least <= wired.again(n) <= least * 1.2


def test_what_has_failed_together_does_not_come_back_together_and_the_seed_says_when():
    def delays(seed):
        wired = Wired(max_spout_retries=9, spout_retry_backoff_millis=1000, chance=Random(seed))
        return [wired.again(1) for _ in range(100)]

    assert len(set(delays(1))) == 100
    assert delays(1) == delays(1) != delays(2)


def test_the_error_names_tuple_reason_attempts_offset_and_remedy():
    wired = Wired()
    with pytest.raises(GivenUp) as caught:
        wired.again()
    error = tuple_failed(caught.value, "partition 'p' [0, 9) of spout 'words'")
    assert str(error) == (
        "[PYSTORM_TUPLE_FAILED] component 'split', task 3: process() raised ValueError: it broke; "
        "tuple (b'a', 5) of words.default; offset 7; 4 attempts; "
        "no retry is left (topology.max.spout.retries=3): allow for more, or go on without it by "
        "topology.dead.letter=stream or drop; in partition 'p' [0, 9) of spout 'words'"
    )
    assert caught.value.__cause__ is BROKE
    assert wired.counts == (0, 1, 0)


def test_the_error_of_one_attempt_without_an_offset_with_values_that_are_long():
    with pytest.raises(GivenUp) as caught:
        Wired(max_spout_retries=0).again(1, None, ["x" * 1000], -1, "other")
    text = str(tuple_failed(caught.value))
    assert text.startswith("[PYSTORM_TUPLE_TIMED_OUT] component 'words', task 1: the tuple timed out; tuple ('xxx")
    assert " of words.other; 1 attempt; no retry is left (topology.max.spout.retries=0)" in text
    assert "x" * 190 in text
    assert "x" * 201 not in text


def test_a_row_says_who_why_how_often_where_what_and_when():
    wired = Wired(dead_letter="stream")
    wired.retries.partition = "p"
    assert wired.again() == -1
    [row] = wired.rows
    time = datetime.datetime(1970, 1, 2, 0, 0, 0, 500_000, datetime.UTC)
    assert row == ("split", "ValueError: it broke", 4, "p", 7, '["YQ==", 5]', time)
    assert json.loads(row[5]) == ["YQ==", 5]
    assert wired.counts == (0, 1, 0)
    assert not wired.warnings


def test_a_row_of_a_spout_without_offsets():
    wired = Wired(dead_letter="stream")
    wired.retries.give_up_own("a", ["a"], None, 4, "max_fails=3")
    wired.retries.blame(None)
    wired.retries.give_up_own("b", ["b"], "other", 2, "max_fails=1")
    assert [row[:6] for row in wired.rows] == [
        ("words", "failed", 4, None, None, '["a"]'),
        ("words", "timed out", 2, None, None, '["b"]'),
    ]


def test_an_exception_that_does_not_print():
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError("no words")

    wired = Wired(dead_letter="stream")
    wired.again(blame=("split", 3, "process", None, Mute()))
    assert wired.rows[0][1] == "Mute, which does not print"


@pytest.mark.parametrize(
    ("policy", "why"),
    [("drop", "topology.dead.letter is drop"), ("stream", "the stream __dead_letter has no reader")],
)
def test_what_nobody_gets_to_see_is_counted_and_warned_of(policy, why):
    wired = Wired(dead_letter=policy, read=False)
    wired.again()
    assert wired.counts == (0, 1, 1)
    [(what, text)] = wired.warnings
    assert what == "dropped"
    assert text.startswith(f"drops a tuple, as {why}: component 'split', task 3: process() raised ")
    assert "; tuple (b'a', 5) of words.default; offset 7; 4 attempts. " in text


def test_a_component_that_has_it_beside_it_pickles():
    assert pickle.loads(pickle.dumps(Wired().retries)) is None
