"""Which option is proposed for a key that is not known: what users of streamparse, Storm, Kafka and Spark write."""

import pytest

from pystorm_source.errors import OptionError
from pystorm_source.options import EngineOptions, Options, SourceOptions, check_known, declared_by
from pystorm_source.options.near_key import near_key
from pystorm_source.options.storm_keys import STORM_KEYS
from pystorm_source.spouts import FilesSpout, KafkaSpout, RateSpout


def proposed(given: str, spout: type) -> str | None:
    tables: tuple[type[Options], ...] = (SourceOptions, EngineOptions, *declared_by(spout))
    with pytest.raises(OptionError) as caught:
        check_known([given], tables, STORM_KEYS)
    head, _, rest = caught.value.message.partition("did you mean '")
    assert head.startswith(f"unknown option {given!r}: ")
    return rest.partition("'")[0] or None


@pytest.mark.parametrize(
    ("given", "meant", "spout"),
    [
        # a slip
        ("maxOffsetPerTrigger", "maxOffsetsPerTrigger", RateSpout),
        ("pth", "path", FilesSpout),
        ("topolgy.debug", "topology.debug", RateSpout),
        ("subscirbe", "subscribe", KafkaSpout),
        # another ending, case or separator
        ("startAt", "startingOffsets", RateSpout),
        ("startAt", "startingOffsets", KafkaSpout),
        ("startFrom", "startingOffsets", KafkaSpout),
        ("starting_offsets", "startingOffsets", KafkaSpout),
        ("endAt", "endingOffsets", FilesSpout),
        ("rows_per_second", "rowsPerSecond", RateSpout),
        ("batchTargetMs", "batch.target.millis", RateSpout),
        ("deadLetter", "topology.dead.letter", RateSpout),
        # Storm's and streamparse's words
        ("max.spout.pending", "topology.max.spout.pending", RateSpout),
        ("message_timeout_secs", "topology.message.timeout.secs", RateSpout),
        ("acker_count", "topology.acker.executors", RateSpout),
        ("topology.ackers", "topology.acker.executors", RateSpout),
        ("log_level", "pystorm.log.level", RateSpout),
        ("maxRetries", "topology.max.spout.retries", RateSpout),
        # a key of Storm's own that has no effect is proposed for a slip in it
        ("topology.workrs", "topology.workers", RateSpout),
        # Kafka's
        ("auto.offset.reset", "startingOffsets", KafkaSpout),
        ("bootstrap.servers", "kafka.bootstrap.servers", KafkaSpout),
        ("group.id", "kafka.group.id", KafkaSpout),
        ("topics", "subscribe", KafkaSpout),
        ("topicPattern", "subscribePattern", KafkaSpout),
        # those of Spark's other sources
        ("maxFilesPerTrigger", "maxOffsetsPerTrigger", FilesSpout),
        ("maxRecordsPerTrigger", "maxOffsetsPerTrigger", KafkaSpout),
        ("recursiveFileLookup", "files.recursive", FilesSpout),
        ("header", "files.header", FilesSpout),
        ("includeHeader", "includeHeaders", KafkaSpout),
        ("failOnMissingData", "failOnDataLoss", KafkaSpout),
    ],
)
def test_the_key_that_is_meant_is_proposed(given, meant, spout):
    assert proposed(given, spout) == meant


@pytest.mark.parametrize("given", ["foo", "colour", "x", "", "…", "user.account.region"])
def test_a_key_that_is_near_to_none_gets_the_list(given):
    assert proposed(given, KafkaSpout) is None


def test_nothing_is_proposed_out_of_nothing():
    assert near_key("startAt", []) is None
