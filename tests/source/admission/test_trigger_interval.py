"""The interval of a trigger shows in when the source is asked, and nothing else is taken for one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystorm_source.source.admission.trigger_interval import TriggerInterval

EPOCH = 1_700_000_040.0


def after(asked, idle=1.0):
    trigger = TriggerInterval()
    for wall in asked:
        trigger = trigger.asked_again(EPOCH + wall, idle)
    return trigger


@pytest.mark.parametrize("interval", [0.5, 1.0, 2.0, 10.0, 60.0])
def test_a_trigger_that_is_waited_for_shows_within_four_questions(interval):
    trigger = after([0.3 * interval + 0.2, *(interval * n + 0.004 for n in range(1, 6))], idle=interval / 2)
    assert trigger.interval == interval
    assert trigger.waited


def test_a_micro_batch_that_took_longer_has_not_waited():
    found = [2.003, 4.002, 6.004, 8.003]
    trigger = after(found)
    assert trigger.interval == 2.0
    trigger = trigger.asked_again(EPOCH + 11.4, 0.5)
    assert (trigger.interval, trigger.waited) == (2.0, False)
    assert trigger.asked_again(EPOCH + 12.003, 0.5).waited


def test_who_is_asked_too_early_has_another_trigger():
    assert after([2.003, 4.002, 6.004, 8.003, 8.5]).interval == 0


@given(st.lists(st.floats(0.01, 3), min_size=1, max_size=30))
def test_micro_batches_one_behind_the_other_are_no_trigger(gaps):
    wall, asked = 0.2, []
    for gap in gaps:
        wall += gap
        asked.append(wall)
    assert after(asked, idle=0.0).interval == 0
