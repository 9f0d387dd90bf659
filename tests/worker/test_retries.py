"""What becomes of a spout's tuple that has failed: again, after how long, and as which dead letter."""

import datetime
import json
import pickle

import pytest

from pystorm_source.clock import ManualClock
from pystorm_source.options import EngineOptions, parse
from pystorm_source.worker.failure import Failed, GivenUp, tuple_failed
from pystorm_source.worker.retries import Retries

pytestmark = pytest.mark.inline  # nothing here is scheduled

FAILED = Failed((b"a", 5), "default", 7, 4, "split", "ValueError: it broke")


class Wired:
    """The retries of a task, with what they emit and warn of."""

    def __init__(self, read=True, **options):
        self.rows, self.warnings = [], []
        options = parse(EngineOptions, {f"topology.{key.replace('_', '.')}": value for key, value in options.items()})
        self.retries = Retries("words", 1, options, ManualClock(86_400.5), self.send, self.warn)
        self.read = read

    def send(self, row):
        self.rows.append(row)
        return self.read

    def warn(self, what, text):
        self.warnings.append((what, text))

    @property
    def counts(self):
        return self.retries.retries, self.retries.dead_letters, self.retries.dropped


def test_three_retries_at_once_where_nobody_asks_for_more():
    wired = Wired(dead_letter="drop")
    assert [wired.retries.again(FAILED._replace(attempts=n)) for n in (1, 2, 3, 4)] == [0, 0, 0, None]
    assert wired.counts == (3, 1, 1)


def test_no_retry():
    assert Wired(max_spout_retries=0, dead_letter="drop").retries.again(FAILED._replace(attempts=1)) is None


@pytest.mark.parametrize(
    ("millis", "seconds"),
    [(0, [0, 0, 0]), (1, [0.001, 0.002, 0.004]), (20_000, [20, 40, 60]), (60_000, [60, 60, 60])],
)
def test_the_back_off_doubles_up_to_a_minute(millis, seconds):
    wired = Wired(max_spout_retries=2_000_000_000, spout_retry_backoff_millis=millis)
    assert [wired.retries.again(FAILED._replace(attempts=n)) for n in (1, 2, 3)] == seconds
    assert wired.retries.again(FAILED._replace(attempts=1_999_999_999)) == (60 if millis else 0)


def test_the_error_names_tuple_reason_attempts_offset_and_remedy():
    wired = Wired()
    cause = ValueError("it broke")
    with pytest.raises(GivenUp) as caught:
        wired.retries.again(FAILED._replace(cause=cause))
    error = tuple_failed(caught.value, "partition 'p' [0, 9) of spout 'words'")
    assert str(error) == (
        "tuple (b'a', 5) of words.default, offset 7, has failed for good after 4 attempts: ValueError: it broke, by "
        "component 'split'; mend what fails it, allow for more retries (topology.max.spout.retries=3), or go on "
        "without it by topology.dead.letter=stream or drop; in partition 'p' [0, 9) of spout 'words'"
    )
    assert caught.value.__cause__ is cause
    assert wired.counts == (0, 1, 0)


def test_the_error_of_one_attempt_without_an_offset_with_values_that_are_long():
    failed = FAILED._replace(values=("x" * 1000,), offset=-1, attempts=1)
    with pytest.raises(GivenUp) as caught:
        Wired(max_spout_retries=0).retries.again(failed)
    text = str(tuple_failed(caught.value))
    assert "of words.default, has failed for good after 1 attempt: " in text
    assert "x" * 190 in text
    assert "x" * 201 not in text


def test_a_row_says_who_why_how_often_where_what_and_when():
    wired = Wired(dead_letter="stream")
    wired.retries.partition = "p"
    assert wired.retries.again(FAILED) is None
    [row] = wired.rows
    time = datetime.datetime(1970, 1, 2, 0, 0, 0, 500_000, datetime.UTC)
    assert row == ("split", "ValueError: it broke", 4, "p", 7, '["YQ==", 5]', time)
    assert json.loads(row[5]) == ["YQ==", 5]
    assert wired.counts == (0, 1, 0)
    assert not wired.warnings


def test_a_row_of_a_spout_without_offsets():
    wired = Wired(dead_letter="stream")
    wired.retries.give_up(FAILED._replace(offset=-1), "max_fails=3")
    assert wired.rows[0][3:5] == (None, None)


@pytest.mark.parametrize(
    ("policy", "why"),
    [("drop", "topology.dead.letter is drop"), ("stream", "nobody reads the stream __dead_letter")],
)
def test_what_nobody_gets_to_see_is_counted_and_warned_of(policy, why):
    wired = Wired(dead_letter=policy, read=False)
    wired.retries.again(FAILED)
    assert wired.counts == (0, 1, 1)
    [(what, text)] = wired.warnings
    assert what == "dropped"
    assert "tuple (b'a', 5) of words.default, offset 7, has failed for good" in text
    assert f"it is dropped, as {why}" in text


def test_a_component_that_has_it_beside_it_pickles():
    assert pickle.loads(pickle.dumps(Wired().retries)) is None
