"""minOffsetsPerTrigger holds data back, maxTriggerDelay lets it go."""

import pytest

from pystorm_source.clock import ManualClock
from pystorm_source.errors import OptionError
from pystorm_source.options.duration import parse_duration
from pystorm_source.source.driver.trigger_delay import TriggerDelay


def test_holds_until_there_is_enough():
    delay = TriggerDelay(60, ManualClock())
    assert delay.holds(4, 5)
    assert not delay.holds(5, 5)


def test_holds_until_the_delay_has_passed_since_data_was_first_seen():
    clock = ManualClock()
    delay = TriggerDelay(60, clock)
    clock.advance(1000)  # nothing waited yet
    assert delay.holds(1, 5)
    clock.advance(59)
    assert delay.holds(2, 5)
    clock.advance(1)
    assert not delay.holds(2, 5)
    assert delay.holds(1, 5)  # anew
    clock.advance(59)
    assert delay.holds(1, 5)


def test_a_batch_in_between_begins_anew():
    clock = ManualClock()
    delay = TriggerDelay(60, clock)
    assert delay.holds(1, 5)
    clock.advance(30)
    assert not delay.holds(9, 5)
    clock.advance(40)
    assert delay.holds(1, 5)


@pytest.mark.parametrize(("waiting", "minimum"), [(0, 5), (1, None), (0, None)])
def test_nothing_to_hold(waiting, minimum):
    assert not TriggerDelay(60, ManualClock()).holds(waiting, minimum)


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("15m", 900), ("1.5 h", 5400), (" 200ms ", 0.2), ("0s", 0)])
def test_durations(text, seconds):
    assert parse_duration("maxTriggerDelay", text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "15", "m", "-1s", "1 minute", "1s2s", "∞s"])
def test_what_is_no_duration(text):
    with pytest.raises(OptionError, match="'maxTriggerDelay' is a number with ms, s, m, h or d") as refused:
        parse_duration("maxTriggerDelay", text)
    assert str(refused.value).endswith(f"Given: {text!r}")
