"""Topologies in streamparse's style run as they are written: only their imports name this package."""

import json
from collections import Counter, defaultdict

import pytest

from examples.cycle import Cycle
from examples.direct import Direct
from examples.fancy_streams import FancyStreams
from examples.pixel_count import PixelCount
from examples.redis_word_count import RedisWordCount
from examples.sentences import Sentences
from examples.word_count import WordCount
from pystorm_source.testing import PAUSE, ScriptedSpout, run_topology
from tests.examples.redis_server import redis_server
from tests.source.queries import Query

WORDS = ["dog", "cat", "dog", "zebra", "dog", "cat"]
TOTALS = [("cat", 1), ("cat", 2), ("dog", 10), ("dog", 20), ("dog", 30), ("zebra", 1)]
BEST_EFFORT = {"delivery.guarantee": "best-effort", "maxOffsetsPerTrigger": 400}

DROP = {"topology.dead.letter": "drop"}  # as in streamparse, whose reliable spouts give up without a word


def words_spout():
    """In the place of the endless spout, the same words and then nothing more."""
    return ScriptedSpout.of(["word"], *([word] for word in WORDS)).spec()


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_the_quickstart_counts_every_word_in_the_one_task_that_it_belongs_to(seed):
    class Scripted(WordCount):
        word_spout = words_spout()

    result = run_topology(Scripted, seed=seed)
    assert sorted(result.rows("count_bolt")) == TOTALS
    assert (result.acked["word_spout"], result.unsettled["word_spout"], result.errors) == (6, 0, [])


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_values_that_are_lists_are_counted_by_their_content(seed):
    result = run_topology(Sentences, seed=seed, config=DROP)
    assert all(type(word) is list and len(word) == 1 for (word,) in result.rows("splitter"))
    assert sorted(result.rows("counter")) == sorted(
        [("the", 1), ("the", 2), ("the", 3), ("moon", 1), ("moon", 2), ("cow", 1), ("jumped", 1), ("over", 1)]
    )


def test_a_tuple_that_is_failed_and_then_acked_by_itself_has_failed():
    """The tutorial's splitter does so with an empty sentence: the spout sends it again, as often as it may."""
    result = run_topology(Sentences, config=DROP)
    assert result.errors == []
    assert result.rows("sentence_spout").count(("",)) == 1 + 3
    assert (result.failed["sentence_spout"], result.acked["sentence_spout"]) == (4, 2)
    assert (result.failed["splitter"], result.acked["splitter"]) == (4, 2)
    assert result.unsettled["sentence_spout"] == 0


def hit(url, ip="10.0.0.1"):
    return [json.dumps({"ip": ip, "ts": 1_700_000_000, "url": url})]


def test_pixels_are_told_at_every_tick_and_when_the_micro_batch_ends():
    class Scripted(PixelCount):
        pixel_spout = ScriptedSpout.of(
            ["message"], hit("/a"), hit("/b"), hit("/a"), PAUSE(11), hit("/a"), PAUSE(25), hit("/c")
        ).spec()

    result = run_topology(Scripted)
    assert result.errors == []
    told = defaultdict(list)
    for url, count in result.rows("counter"):
        told[url].append(count)
    assert told == {"/a": [2, 1], "/b": [1], "/c": [1]}


def test_a_message_that_does_not_parse_fails_the_task_and_is_named():
    class Scripted(PixelCount):
        pixel_spout = ScriptedSpout.of(["message"], hit("/a"), ["{nonsense"]).spec()

    (error,) = run_topology(Scripted, errors="collect").errors
    assert isinstance(error.__cause__, json.JSONDecodeError)
    assert "component 'deserializer'" in str(error) and "{nonsense" in str(error)


def test_two_streams_of_a_spout_reach_each_its_bolt():
    result = run_topology(FancyStreams)
    assert sorted(result.rows("good")) == [(68.0,), (69.8,), (71.6,)]
    assert sorted(result.rows("bad")) == [("fancy_spout.errors: 'n/a'",), ("fancy_spout.errors: None",)]
    assert result.rows("fancy_spout", "errors") == [("n/a",), (None,)]


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_a_cycle_named_by_a_global_stream_id_runs_to_its_end(seed):
    result = run_topology(Cycle, seed=seed)
    assert sorted(result.rows("even", "done")) == [(1, 0), (6, 8), (7, 16), (27, 111)]
    assert result.errors == []


def test_direct_tuples_reach_the_task_that_the_bolt_found_in_its_context():
    class Scripted(Direct):
        word_spout = ScriptedSpout.of(["word"], *([word] for word in ["a", "bb", "ccc", "dddd", "storm"])).spec()

    result = run_topology(Scripted)
    found = dict(result.rows("letter_bolt"))
    tasks = sorted(set(found.values()))
    assert len(tasks) == 3
    assert found == {word: tasks[len(word) % 3] for word in ["a", "bb", "ccc", "dddd", "storm"]}
    assert (result.acked["word_spout"], result.unsettled["word_spout"]) == (5, 0)


def test_words_are_counted_in_one_redis_by_all_tasks(tmp_path):
    class Scripted(RedisWordCount):
        word_spout = words_spout()

    with redis_server(tmp_path) as redis:
        result = run_topology(Scripted, config={"redis.port": redis.get_connection_kwargs()["port"]})
        assert result.errors == []
        assert dict(redis.zrange("words", 0, -1, withscores=True)) == {"dog": 30, "cat": 2, "zebra": 1}
        assert redis.client_list() and len(redis.client_list()) == 1, "the bolts have closed their connections"
    assert sorted(result.rows("count_bolt")) == TOTALS


def stream(spark, topology, **options):
    reader = spark.readStream.format("pystorm").options(topology=f"examples.{topology}", **BEST_EFFORT, **options)
    return reader.schema("word string, count long").load()


def increments(rows):
    """Word → its counts in ascending order."""
    found = defaultdict(list)
    for word, count in sorted(rows):
        found[word].append(count)
    return found


EXPECTED = {word: list(range(1, 101)) for word in ["cat", "elephant", "zebra"]} | {"dog": list(range(10, 1001, 10))}


@pytest.mark.spark
@pytest.mark.timeout(180)  # may be the first query of the session
def test_the_quickstart_is_a_streaming_query_under_best_effort(spark, tmp_path):
    """The spout never ends: a micro-batch takes as many tuples as it may, and the rest is for the next one."""
    (rows,) = Query(tmp_path).run(stream(spark, "word_count:WordCount"))
    assert increments(rows) == EXPECTED


@pytest.mark.spark
@pytest.mark.timeout(180)
def test_redis_counts_what_a_streaming_query_emits(spark, tmp_path):
    with redis_server(tmp_path) as redis:
        config = json.dumps({"redis.port": redis.get_connection_kwargs()["port"]})
        (rows,) = Query(tmp_path).run(stream(spark, "redis_word_count:RedisWordCount", config=config))
        totals = dict(redis.zrange("words", 0, -1, withscores=True))
    assert totals == {word: counts[-1] for word, counts in EXPECTED.items()}
    assert increments(rows) == EXPECTED
    assert Counter(word for word, _ in rows) == dict.fromkeys(EXPECTED, 100)
