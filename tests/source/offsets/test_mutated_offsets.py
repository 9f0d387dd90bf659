"""Offset JSON as no pystorm-source wrote it: a checkpoint of another source, an edited one, a damaged one."""

import json
import random

import pytest

from pystorm_source.errors import CheckpointError, DataLossError, OptionError
from pystorm_source.source.offsets.offsets import parse, sealed
from tests.mutations.offsets import grown
from tests.source.spark_calls import Checkpoint, Run
from tests.spouts.mutations import COUNT, mutated

OFFSET = sealed(
    {
        "begins": {"numbers": {"b": 100}},
        "state": {"numbers": {"done": "a_done", "newest": 17}},
        "offsets": {"numbers": {"a": 40, "b": 160}},
        "admission": {"numbers": {"common": 120, "others": {"a": 9}, "slots": 2}},
        "version": 1,
    }
)


def mutants(offset, seed):
    """Of the text, as far as they are JSON, and of the value."""
    rng = random.Random(seed)
    text = json.dumps(offset).encode()
    for number in range(COUNT):
        if number % 2:
            value = offset
            for _ in range(rng.randint(1, 3)):
                value = grown(value, rng) if isinstance(value, dict) else value
            yield value
            continue
        try:
            yield json.loads(mutated(text, rng))
        except (ValueError, RecursionError):
            continue  # Spark's, or its Python's, to refuse


def told(call, *arguments):
    """What a call gives; None if it refuses as it should."""
    refusal = None
    try:
        return call(*arguments)
    except (CheckpointError, DataLossError, OptionError) as error:
        refusal = str(error)
    assert "Given: " in refusal
    return None


def resealed(mutant):
    """As a hand that knows of the checksum would leave it."""
    return sealed(mutant) if isinstance(mutant, dict) else mutant


def test_a_mutated_offset_is_refused_or_says_the_same():
    refused = 0
    for mutant in mutants(OFFSET, 2):
        parsed = told(parse, mutant, ["numbers"])
        assert parsed is None or parsed == parse(OFFSET, ["numbers"])
        refused += parsed is None
    assert refused > COUNT / 2


def test_a_mutated_offset_with_its_checksum_is_refused_by_name_or_is_an_offset(world):
    """The checks behind the checksum."""
    world.put(a=200, b=200)
    run = Run(world.options(), Checkpoint())
    understood = 0
    for offset in map(resealed, mutants(OFFSET, 1)):
        ranges = told(run.reader.partitions, offset, OFFSET)
        ranges = ranges if ranges is not None else told(run.reader.partitions, OFFSET, offset)
        for each in ranges or ():
            assert 0 <= each.start < each.end < 2**63
        planned = told(run.reader.latestOffset, offset, run.limit)
        told(run.reader.commit, offset)
        understood += planned is not None
        assert planned is None or isinstance(json.loads(json.dumps(planned)), dict)
    assert 0 < understood < COUNT


@pytest.mark.parametrize("spoilt", ["id", "offset"])
def test_a_mutated_offset_of_a_journal_reads_and_deletes_nothing_else(tmp_path, spoilt):
    """The partition is the name of a folder: only one that a journal can have is looked at."""
    options = {
        "topology": "tests.source.journal_topologies:Tokens",
        "path": str(tmp_path),
        "journal.path": str(tmp_path / "journal"),
        "maxOffsetsPerTrigger": "7",
        "batch.target.millis": "1000",
    }
    run = Run(options, Checkpoint())
    run.trigger()
    run.trigger()
    offset = json.loads(run.position)
    precious = tmp_path / "precious" / "0000000000000000000-0000000000000000001.manifest"
    precious.parent.mkdir()
    precious.touch()
    before = sorted(str(path) for path in tmp_path.rglob("*") if "/precious" in str(path))
    for mutant in map(resealed, mutants(offset, spoilt)):
        planned = told(run.reader.latestOffset, mutant, run.limit)
        if planned is not None:
            told(run.reader.partitions, mutant, planned)
        told(run.reader.commit, mutant)
    assert sorted(str(path) for path in tmp_path.rglob("*") if "/precious" in str(path)) == before
    for path in ["../precious", "..", "/", str(precious.parent)]:
        spoilt_offset = sealed({"offsets": {"tokens": {path: 10}}, "version": 1})
        with pytest.raises(CheckpointError, match="journal of spout 'tokens' that cannot be"):
            run.reader.commit(spoilt_offset)
    assert precious.exists()
