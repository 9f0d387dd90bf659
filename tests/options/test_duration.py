"""Durations, as texts of options name them."""

import pytest

from pystorm_source.errors import OptionError
from pystorm_source.options.duration import parse_duration


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("15m", 900), ("1.5 h", 5400), (" 200ms ", 0.2), ("0s", 0)])
def test_durations(text, seconds):
    assert parse_duration("maxTriggerDelay", text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "15", "m", "-1s", "1 minute", "1s2s", "∞s"])
def test_what_is_no_duration(text):
    with pytest.raises(OptionError, match="'maxTriggerDelay' is a number with ms, s, m, h or d") as refused:
        parse_duration("maxTriggerDelay", text)
    assert str(refused.value).endswith(f"Given: {text!r}")
