"""The record of a micro-batch: JSON both ways, and the bounds that its readers rely on."""

import pytest

from pystorm_source.records.record import Counts, PystormProgress, topology_of
from tests.records.samples import progress


def test_a_record_comes_back_from_its_json() -> None:
    record = progress(batch=3, components=7, partitions=9)
    assert PystormProgress.from_json(record.to_json()) == record


def test_what_has_its_default_is_not_written() -> None:
    assert PystormProgress().to_json() == "{}"


def test_fields_of_a_newer_version_are_passed_over() -> None:
    assert PystormProgress.from_json('{"batchId":3,"ofTomorrow":[1]}').batch_id == 3


def test_a_line_that_was_cut_off_is_refused() -> None:
    with pytest.raises(ValueError, match="truncated"):
        PystormProgress.from_json(progress().to_json()[:-5])


def test_a_section_that_is_none_of_ours_is_no_topology() -> None:
    assert topology_of({"components": 5}) is None
    assert topology_of(None) is None


def test_counts_add_up_field_by_field() -> None:
    assert Counts(executed=1, errors=2) + Counts(executed=3) == Counts(executed=4, errors=2)


def test_the_bottleneck_is_that_of_the_topology() -> None:
    record = progress(slow="bolt2")
    assert record.bottleneck is not None
    assert record.bottleneck.component == "bolt2"
    assert PystormProgress().bottleneck is None
