"""The spouts and bolts that are measured, after Storm's ``storm-perf`` (ConstSpout, IdBolt, NullBolt, word count)."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator
from hashlib import pbkdf2_hmac
from itertools import cycle
from time import perf_counter_ns
from typing import Any

from benchmarks.harness.pairs import even, pair_batch
from pystorm_source.api import ArrowBolt, Bolt, Grouping, PartitionedSpout, Spout, Topology, Tuple, TupleList

SENTENCES = (
    "the cow jumped over the moon",
    "an apple a day keeps the doctor away",
    "four score and seven years ago",
    "snow white and the seven dwarfs",
    "i am at two with nature",
)
NO_ACKER = {"topology.acker.executors": 0}
HEARS_AT_ONCE = {"topology.spout.recvq.skips": 0}


class ConstSpout(Spout):
    """Repeats the same row of one field; without offsets."""

    outputs = ["str string"]

    def next_tuple(self) -> None:
        self.emit(("some data",))


class RangeSpout(PartitionedSpout):
    """Counts through its range. ``conf``: ``benchmark.rows`` in total, over ``benchmark.partitions``."""

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        self.parts = conf.get("benchmark.partitions", 1)
        self.rows = conf.get("benchmark.rows", 0)

    def partitions(self) -> list[str]:
        return [str(number) for number in range(self.parts)]

    def latest(self, partition: str) -> int:
        return self.rows // self.parts

    def open(self, partition: str, start: int, end: int) -> None:
        self.offset = start
        self.end = end


class OffsetSpout(RangeSpout):
    """Emits its offsets as rows of one field."""

    outputs = ["n long"]

    def next_tuple(self) -> bool | None:
        offset = self.offset
        if offset == self.end:
            return False
        self.emit((offset,), offset)
        self.offset = offset + 1
        return None


class PairSpout(RangeSpout):
    """Emits rows of two fields."""

    outputs = ["n long", "x double"]

    def next_tuple(self) -> bool | None:
        offset = self.offset
        if offset == self.end:
            return False
        self.emit((offset, offset * 0.5), offset)
        self.offset = offset + 1
        return None


class BatchSpout(RangeSpout):
    """The rows of PairSpout as Arrow batches of ``benchmark.batch.rows`` rows, made by numpy."""

    outputs = ["n long", "x double"]

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        super().initialize(conf, context)
        self.batch_rows = conf.get("benchmark.batch.rows", 10_000)

    def next_batch(self) -> Any:
        start, self.offset = self.offset, min(self.offset + self.batch_rows, self.end)
        return pair_batch(start, self.offset) if start < self.offset else None


class IdBolt(Bolt):
    """Passes rows of one field on."""

    outputs = ["str string"]

    def process(self, tup: Tuple) -> None:
        self.emit(tup.values)


class PairIdBolt(Bolt):
    """Passes rows of two fields on."""

    outputs = ["n long", "x double"]

    def process(self, tup: Tuple) -> None:
        self.emit(tup.values)


class PairIdColumnsBolt(Bolt):
    """The same, many rows in one call."""

    outputs = ["n long", "x double"]

    def process_many(self, tups: TupleList) -> None:
        self.emit_many(tups.column("n"), tups.column("x"))


class EvenBolt(ArrowBolt):
    """Passes batches on without the rows whose n is odd."""

    outputs = ["n long", "x double"]

    def process_batch(self, batch: Any) -> None:
        self.emit_batch(even(batch))


class NullBolt(Bolt):
    """Takes tuples and does nothing."""

    def process(self, tup: Tuple) -> None:
        pass


class SentenceSpout(Spout):
    """Sentences in turn; without offsets."""

    outputs = ["sentence string"]
    sentences: Iterator[str]

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        self.sentences = cycle(SENTENCES)

    def next_tuple(self) -> None:
        self.emit((next(self.sentences),))


class SplitBolt(Bolt):
    """Emits the words of a sentence."""

    outputs = ["word string"]

    def process(self, tup: Tuple) -> None:
        for word in tup.values.sentence.split():
            self.emit((word,))


class CountBolt(Bolt):
    """Emits running counts of words."""

    outputs = ["word string", "count long"]

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        self.counts: defaultdict[str, int] = defaultdict(int)

    def process(self, tup: Tuple) -> None:
        word = tup.values.word
        self.counts[word] += 1
        self.emit((word, self.counts[word]))


class SplitByIndex(Bolt):
    """SplitBolt as in a first attempt: reads values by index and emits lists."""

    outputs = ["word string"]

    def process(self, tup: Tuple) -> None:
        for word in tup.values[0].split():
            self.emit([word])


class CountSilently(Bolt):
    """Counts words by index, and emits nothing."""

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        self.counts: defaultdict[str, int] = defaultdict(int)

    def process(self, tup: Tuple) -> None:
        self.counts[tup.values[0]] += 1


class SplitInColumns(Bolt):
    """SplitByIndex by column calls: emits the words of all waiting sentences at once."""

    outputs = ["word string"]

    def process_many(self, tups: TupleList) -> None:
        self.emit_many(" ".join(tups.column(0)).split())


class CountSilentlyInColumns(Bolt):
    """CountSilently for all waiting words at once."""

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        self.counts: Counter[str] = Counter()

    def process_many(self, tups: TupleList) -> None:
        self.counts.update(tups.column(0))


class SplitByName(Bolt):
    """SplitBolt that emits lists."""

    outputs = ["word string"]

    def process(self, tup: Tuple) -> None:
        for word in tup.values.sentence.split():
            self.emit([word])


class CountSilentlyByName(Bolt):
    """Counts words by name, and emits nothing."""

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        self.counts: defaultdict[str, int] = defaultdict(int)

    def process(self, tup: Tuple) -> None:
        self.counts[tup.values.word] += 1


class ConstSpoutAcked(Spout):
    """ConstSpout with a message id for each tuple, so that it is acked."""

    outputs = ["str string"]
    gives_ids = True
    count = 0

    def next_tuple(self) -> None:
        self.count = count = self.count + 1
        self.emit(("some data",), count)


class SentenceSpoutAcked(SentenceSpout):
    """SentenceSpout with a message id for each sentence."""

    gives_ids = True
    count = 0

    def next_tuple(self) -> None:
        self.count = count = self.count + 1
        self.emit((next(self.sentences),), count)


class PacedSpout(Spout):
    """Emits its rows in turn, ``benchmark.rate`` per second (0: as many as possible), with the time as message id.

    ``latencies``: nanoseconds from emit to ack.
    """

    outputs = ["str string"]
    rows: tuple[str, ...] = ("some data",)

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        self.limit_rate(conf.get("benchmark.rate", 0))

    def limit_rate(self, rate: float) -> None:
        """Sets the rows per second from now on."""
        self.turns = cycle(self.rows)
        self.latencies = array("q")
        self.interval = 1e9 / rate if rate else 0.0
        self.due = float(perf_counter_ns())

    def next_tuple(self) -> None:
        now = perf_counter_ns()
        if now >= self.due:
            self.due += self.interval
            self.emit((next(self.turns),), now)

    def ack(self, tup_id: int) -> None:
        self.latencies.append(perf_counter_ns() - tup_id)


class PacedSentences(PacedSpout):
    """Emits sentences."""

    rows = SENTENCES


class ConstNull(Topology):
    """ConstSpout → NullBolt."""

    spout = ConstSpout.spec()
    last = NullBolt.spec(inputs=[spout])


class ConstNullUnbatched(ConstNull):
    """ConstSpout → NullBolt, with every tuple put straight into the queue."""

    config = {"topology.producer.batch.size": 1}


class ConstIdNull(Topology):
    """ConstSpout → IdBolt → NullBolt."""

    spout = ConstSpout.spec()
    id = IdBolt.spec(inputs=[spout])
    last = NullBolt.spec(inputs=[id])


class HashBolt(Bolt):
    """Hashes in C for about a millisecond per tuple, without the interpreter's lock."""

    def process(self, tup: Tuple) -> None:
        pbkdf2_hmac("sha256", b"some data", b"salt", 4000)


class ConstHash(Topology):
    """ConstSpout → two tasks of HashBolt."""

    spout = ConstSpout.spec()
    last = HashBolt.spec(inputs=[spout], par=2)


class ConstHashThreads(ConstHash):
    """The same, with a thread for each executor."""

    config = {"topology.scheduler": "threads"}


class SilentSpout(Spout):
    """Never has anything."""

    outputs = ["str string"]

    def next_tuple(self) -> None:
        pass


class SilentNull(Topology):
    """SilentSpout → ten tasks of NullBolt."""

    spout = SilentSpout.spec()
    last = NullBolt.spec(inputs=[spout], par=10)


class OffsetNull(Topology):
    """OffsetSpout → NullBolt."""

    spout = OffsetSpout.spec()
    last = NullBolt.spec(inputs=[spout])


class OffsetIdNull(Topology):
    """OffsetSpout → IdBolt → NullBolt."""

    spout = OffsetSpout.spec()
    id = IdBolt.spec(inputs=[spout])
    last = NullBolt.spec(inputs=[id])


class WordCount(Topology):
    """SentenceSpout → SplitBolt → two CountBolts, by word."""

    spout = SentenceSpout.spec()
    split = SplitBolt.spec(inputs=[spout])
    last = CountBolt.spec(inputs={split: Grouping.fields("word")}, par=2)


class SplitCount(Topology):
    """SentenceSpout → SplitByIndex → CountSilently."""

    spout = SentenceSpout.spec()
    split = SplitByIndex.spec(inputs=[spout])
    last = CountSilently.spec(inputs={split: Grouping.fields("word")})


class SplitCountInColumns(Topology):
    """SentenceSpout → SplitInColumns → CountSilentlyInColumns."""

    spout = SentenceSpout.spec()
    split = SplitInColumns.spec(inputs=[spout])
    last = CountSilentlyInColumns.spec(inputs={split: Grouping.fields("word")})


class ConstNullAcked(ConstNull):
    """ConstNull with message ids."""

    config = {"topology.max.spout.pending": 5000}
    spout = ConstSpoutAcked.spec()


class ConstIdNullAcked(ConstIdNull):
    """ConstIdNull with message ids."""

    config = {"topology.max.spout.pending": 5000}
    spout = ConstSpoutAcked.spec()


class SplitCountAcked(SplitCount):
    """SplitCount with message ids."""

    config = {"topology.max.spout.pending": 2000}
    spout = SentenceSpoutAcked.spec()


class SplitCountInColumnsAcked(SplitCountInColumns):
    """SplitCountInColumns with message ids."""

    config = SplitCountAcked.config
    spout = SentenceSpoutAcked.spec()


class ConstNullAckerless(ConstNullAcked):
    """ConstNullAcked without an acker."""

    config = NO_ACKER


class ConstIdNullAckerless(ConstIdNullAcked):
    """ConstIdNullAcked without an acker."""

    config = NO_ACKER


class SplitCountAckerless(SplitCountAcked):
    """SplitCountAcked without an acker."""

    config = NO_ACKER


class PacedNull(ConstNull):
    """PacedSpout → NullBolt."""

    config = HEARS_AT_ONCE
    spout = PacedSpout.spec()


class PacedIdNull(ConstIdNull):
    """PacedSpout → IdBolt → NullBolt."""

    config = HEARS_AT_ONCE
    spout = PacedSpout.spec()


class PacedSplitCount(SplitCount):
    """PacedSentences → SplitByIndex → CountSilently."""

    config = HEARS_AT_ONCE | {"topology.max.spout.pending": 64}
    spout = PacedSentences.spec()


class SplitCountByName(Topology):
    """SentenceSpout → SplitByName → CountSilentlyByName."""

    spout = SentenceSpout.spec()
    split = SplitByName.spec(inputs=[spout])
    last = CountSilentlyByName.spec(inputs={split: Grouping.fields("word")})


class SplitCountInTwo(Topology):
    """SplitCount with two counting tasks."""

    spout = SentenceSpout.spec()
    split = SplitByIndex.spec(inputs=[spout])
    last = CountSilently.spec(inputs={split: Grouping.fields("word")}, par=2)


class PairOut(Topology):
    """PairSpout → output."""

    last = PairSpout.spec()


class PairIdOut(Topology):
    """PairSpout → PairIdBolt → output."""

    spout = PairSpout.spec()
    last = PairIdBolt.spec(inputs=[spout])


class BatchOut(Topology):
    """BatchSpout → output."""

    last = BatchSpout.spec()


class BatchIdOut(Topology):
    """BatchSpout → PairIdBolt → output."""

    spout = BatchSpout.spec()
    last = PairIdBolt.spec(inputs=[spout])


class BatchIdColumnsOut(Topology):
    """BatchSpout → PairIdColumnsBolt → output."""

    spout = BatchSpout.spec()
    last = PairIdColumnsBolt.spec(inputs=[spout])


class BatchEvenOut(Topology):
    """BatchSpout → EvenBolt → output."""

    spout = BatchSpout.spec()
    last = EvenBolt.spec(inputs=[spout])
