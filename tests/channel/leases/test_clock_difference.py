"""How far two clocks differ, from questions and answers."""

import pytest

from pystorm_source.channel.leases.clock_difference import ClockDifference


def test_the_answer_that_took_the_shortest_counts():
    difference = ClockDifference()
    assert difference.ahead(10.0, 1010.0, 10.2) == pytest.approx(999.9)
    assert difference.ahead(11.0, 1011.005, 11.01) == pytest.approx(1000.0)
    assert difference.ahead(12.0, 1012.19, 12.2) == pytest.approx(1000.0)


def test_a_clock_that_was_set_counts_at_once():
    difference = ClockDifference()
    difference.ahead(10.0, 1010.0, 10.001)
    assert difference.ahead(11.0, 1041.05, 11.1) == pytest.approx(1030.0)


def test_an_old_answer_counts_no_more():
    difference = ClockDifference()
    difference.ahead(10.0, 1010.0005, 10.001)
    assert difference.ahead(80.0, 1080.02, 80.1) == pytest.approx(999.97)
