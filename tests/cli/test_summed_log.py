"""Lines of one place of code, by the thousand: which are printed, by a clock of the test."""

import logging

import pytest

from pystorm_source.cli.displays.summed_log import FIRST, SECONDS_BETWEEN, SummedLog
from pystorm_source.clock import ManualClock


@pytest.fixture
def log():
    """A logger whose lines are summed up, the clock, and what is printed."""
    printed = []
    to = logging.Handler()
    to.emit = lambda record: printed.append(record.getMessage())
    clock = ManualClock()
    summed = SummedLog(to, clock)
    logger = logging.Logger("pystorm.component.count")
    logger.addHandler(summed)
    return logger, clock, summed, printed


def test_lines_of_one_template_are_counted(log):
    logger, clock, summed, printed = log
    for number in range(3300):
        clock.now = number / 1650
        logger.info(f"counted [{number:,}] words")
    summed.say_counts()
    assert printed[:FIRST] == [f"counted [{number}] words" for number in range(FIRST)]
    (count,) = printed[FIRST:]
    assert count.startswith("3,295 more lines of test_summed_log.py:") and count.endswith(": counted [3,299] words")


def test_a_long_run_says_the_count_now_and_then(log):
    logger, clock, summed, printed = log
    for number in range(1000):
        clock.now = number / 10
        logger.info("line %d", number)
    summed.say_counts()
    windows = 100 / SECONDS_BETWEEN
    assert len(printed) <= (FIRST + 1) * (windows + 1)
    said = [int(text.split()[0].replace(",", "")) for text in printed if " more lines of " in text]
    assert sum(said) + sum(text.startswith("line ") for text in printed) == 1000, "each is printed or counted"


def test_another_place_and_slow_lines_are_printed(log):
    logger, clock, summed, printed = log
    for number in range(50):
        clock.now = number * SECONDS_BETWEEN
        logger.info("slow %d", number)
        logger.info("another")
    summed.say_counts()
    assert len(printed) == 100


@pytest.mark.parametrize("level", [logging.WARNING, logging.ERROR])
def test_warnings_and_errors_are_never_counted(log, level):
    logger, _, summed, printed = log
    for number in range(100):
        logger.log(level, "number %d", number)
    summed.say_counts()
    assert len(printed) == 100
