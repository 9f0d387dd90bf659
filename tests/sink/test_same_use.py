"""Two writes of one micro-batch under one name."""

import pytest

from pystorm_source.errors import OptionError
from pystorm_source.sink.same_use import refuse_same_use


def test_a_second_write_of_the_micro_batch_is_refused_and_names_the_use(tmp_path):
    refuse_same_use(tmp_path, "run", 7, "Charges", "eu", "first")
    with pytest.raises(OptionError, match=r"micro-batch 7 to 'Charges'.*option\('use', ...\).*Given: use='eu'"):
        refuse_same_use(tmp_path, "run", 7, "Charges", "eu", "second")


@pytest.mark.parametrize(
    "other",
    [
        ("run", 7, "Charges", "us", "second"),  # another name
        ("run", 7, "Refunds", "eu", "second"),  # another topology
        ("run", 8, "Charges", "eu", "second"),  # the next micro-batch
        ("later", 7, "Charges", "eu", "second"),  # the same one, after a restart
        ("run", 7, "Charges", "eu", "first"),  # the same write, whose commit comes again
    ],
)
def test_any_other_write_is_taken(tmp_path, other):
    refuse_same_use(tmp_path, "run", 7, "Charges", "eu", "first")
    refuse_same_use(tmp_path, *other)
