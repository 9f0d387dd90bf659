"""The record of a micro-batch: JSON both ways, and the bounds that its readers rely on."""

import re

import pytest
from msgspec.structs import replace

from pystorm_source.records.record import Metric, PystormProgress, topology_of
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


def test_the_bottleneck_is_that_of_the_topology() -> None:
    record = progress(slow="bolt2")
    assert record.bottleneck is not None
    assert record.bottleneck.component == "bolt2"
    assert PystormProgress().bottleneck is None


def test_counts_of_earlier_versions_are_read_under_their_names_of_now() -> None:
    record = progress(batch=3, components=3)
    assert record.topology is not None
    first, *others = record.topology.components
    metrics = {name: Metric(count=1, sum=2.0, last=2) for name in ("retried", "deadLettered", 'a"batch":{"retried":1}')}
    first = replace(first, batch=replace(first.batch, dead_letters=2), metrics=metrics)
    record = replace(record, topology=replace(record.topology, components=(first, *others)))
    line = record.to_json()
    earlier = re.sub(r'"retries":(\d+,"d|\d+\})', r'"retried":\1', line).replace('"deadLetters":2', '"deadLettered":2')
    assert '"retried":3' in earlier and '"deadLettered":2' in earlier
    assert PystormProgress.from_json(earlier) == PystormProgress.from_json(line.encode()) == record
