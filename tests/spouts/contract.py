"""The laws of every PartitionedSpout. A spout's test subclasses ``PartitionedSpoutContract`` and gives it a world."""

import pytest

from pystorm_source.testing.spout_laws import LAWS
from pystorm_source.testing.spout_trial import SpoutTrial
from tests.spouts.drive import Driven


class PartitionedSpoutContract:
    """Subclasses define the fixture ``driven``: a spout over a world that stands still, with a few dozen rows or
    more.
    """

    @pytest.fixture
    def driven(self, tmp_path) -> Driven:
        raise NotImplementedError

    @pytest.fixture
    def ranges(self, driven):
        """partition → (earliest, latest)."""
        return SpoutTrial(driven).ranges

    @pytest.mark.parametrize("law", LAWS, ids=lambda law: law.says.replace(" ", "_"))
    def test_law(self, driven, law):
        SpoutTrial(driven).judge(law)
