"""A query's record file: what is read of it, what is left out, what it is refused for."""

import json
from itertools import pairwise

import pytest
from msgspec.structs import replace

from pystorm_source.errors import OptionError
from pystorm_source.records.record import PystormProgress
from pystorm_source.tuning.classify import findings
from pystorm_source.tuning.from_records import observed_of, read_records
from tests.records import samples


def file_of(tmp_path, lines):
    path = tmp_path / "orders-1.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_the_slowed_bolt_is_named(tmp_path):
    path = file_of(tmp_path, [samples.progress(batch, slow="bolt3").to_json() for batch in range(6)])
    observed = observed_of(read_records(path), cores=4)
    assert [(each.cause, each.component) for each in findings(observed) if each.component] == [("slow bolt", "bolt3")]
    assert observed.component("bolt3").batch.executed == sum(
        record.topology.component("bolt3").batch.executed for record in read_records(path)[2:]
    )


@pytest.mark.parametrize("batches", [2, 3, 5])
def test_a_run_that_has_read_all_was_held_back_all_the_same(tmp_path, batches):
    """As under Trigger.AvailableNow, whose last micro-batch leaves no backlog."""
    every = [samples.progress(batch, slow="bolt3") for batch in range(batches)]
    drained = [*every[:-1], replace(every[-1], backlog=0)]
    assert "bolt3" in [each.component for each in findings(observed_of(drained, cores=4))]
    kept_up = [replace(each, backlog=0) for each in every]
    assert findings(observed_of(kept_up, cores=4)) == []


def test_the_last_line_of_a_micro_batch_counts_and_a_cut_one_does_not(tmp_path):
    first, last = samples.progress(0), samples.progress(0, seed=9)
    begin = json.dumps({"kind": "begin", "topology": "Sample", "run": "1", "began": 0.0})
    path = file_of(tmp_path, [begin, first.to_json(), last.to_json(), samples.progress(1).to_json()[:200]])
    assert read_records(path) == [last]


def test_a_file_without_records_is_refused(tmp_path):
    with pytest.raises(OptionError, match="no such line"):
        read_records(file_of(tmp_path, ["{}", PystormProgress().to_json()]))
    with pytest.raises(OptionError, match="No such file"):
        read_records(tmp_path / "none.jsonl")


def test_counts_of_the_micro_batch_before_go_with_its_duration(tmp_path):
    """As a listener has them, out of Spark's progress."""
    same = [samples.progress(batch) for batch in range(8)]
    shifted = [
        replace(late, tasks=early.tasks, topology=early.topology, counts_of_batch_before=True)
        for early, late in pairwise(same)
    ]
    assert observed_of(shifted, 4).micro_batches[0].seconds == same[3].seconds
    assert observed_of(same, 4).micro_batches[0].seconds == same[2].seconds
