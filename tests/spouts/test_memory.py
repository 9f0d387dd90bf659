import datetime

import pytest

from pystorm_source.errors import OptionError
from pystorm_source.spouts import MemorySpout
from tests.spouts.contract import PartitionedSpoutContract
from tests.spouts.drive import Driven


class Days(MemorySpout):
    outputs = ["day date", "n long"]
    rows = [(datetime.date(2024, 2, 28) + datetime.timedelta(days=n), n) for n in range(50)]
    number_of_partitions = 3


class TestContract(PartitionedSpoutContract):
    @pytest.fixture
    def driven(self):
        return Driven(
            MemorySpout.spec(fields=["n long", "word string"], rows=[[n, f"w{n}"] for n in range(77)], partitions=4)
        )


class TestContractOfSubclass(PartitionedSpoutContract):
    @pytest.fixture
    def driven(self):
        return Driven(Days.spec())


def test_rows_are_dealt_in_turn():
    driven = Driven(MemorySpout.spec(fields=["n long"], rows=[(n,) for n in range(7)], partitions=3))
    assert driven.driver.snapshot({}, {}).heads == {"0": (0, 3), "1": (0, 2), "2": (0, 2)}
    assert driven.read("1", 0, 2) == [(0, (1,)), (1, (4,))]


def test_a_row_of_another_length_is_refused_where_it_is_written():
    with pytest.raises(OptionError, match=r"a value for each of \['n', 'word'\]. Given: \[2\]"):
        MemorySpout.spec(fields=["n long", "word string"], rows=[[1, "a"], [2]])


def test_more_partitions_than_rows():
    driven = Driven(MemorySpout.spec(fields=["n long"], rows=[[1]], partitions=3))
    assert driven.driver.snapshot({}, {}).heads == {"0": (0, 1), "1": (0, 0), "2": (0, 0)}


@pytest.mark.parametrize(
    "config", [{"rows": ["ab"]}, {"rows": [[1]], "partitions": 0}, {"rows": [[1]], "partitions": True}]
)
def test_what_is_no_row_or_count_is_refused(config):
    with pytest.raises(OptionError, match="Given: "):
        Driven(MemorySpout.spec(fields=["n long"], **config))
