"""What Storm's integration tests hold its groupings to, and storm-starter its join bolt, restated: in one task, in
several, and on Spark."""

from collections import Counter

import pytest

from pystorm_source import Bolt, Grouping, JoinBolt, PartitionedSpout, Stream, Topology, read
from pystorm_source.spouts import MemorySpout
from pystorm_source.testing import run_topology

WORDS = ["nathan", "bob", "joey", "nathan"]


def rows_of(topology, component, where, request):
    """The rows of its default stream: run in one task, in so many that share nothing, or on Spark."""
    if where == "spark":
        spark = request.getfixturevalue("spark")
        return [tuple(row) for row in read(spark, topology, scope="cluster", stream=f"{component}.default").collect()]
    if where == "task":
        return run_topology(topology, together=True).rows(component)
    return run_topology(topology, scope="cluster", tasks=where).rows(component)


everywhere = pytest.mark.parametrize("where", ["task", 1, 4, pytest.param("spark", marks=pytest.mark.spark)])


class WordCounter(Bolt):
    """Storm's TestWordCounter."""

    outputs = ["word string", "count long"]

    def initialize(self, conf, context):
        self.counts = Counter()

    def process(self, tup):
        self.counts[tup.values.word] += 1
        self.emit([tup.values.word, self.counts[tup.values.word]])


class GlobalCount(Bolt):
    """Storm's TestGlobalCount."""

    outputs = ["count long"]

    def initialize(self, conf, context):
        self.count = 0

    def process(self, tup):
        self.count += 1
        self.emit([self.count])


class Aggregates(Bolt):
    """Storm's TestAggregatesCounter: how many tuples say that a key is new."""

    outputs = ["keys long"]

    def initialize(self, conf, context):
        self.keys = set()

    def process(self, tup):
        self.keys.add(tup.values.word)
        self.emit([len(self.keys)])


def basic(leaves):
    """testBasicTopology, with the bolts that ``leaves`` names at the end."""
    words = MemorySpout.spec(fields=["word string"], rows=[[word] for word in WORDS])
    made = {"words": words, "counter": WordCounter.spec(inputs={words: Grouping.fields("word")}, par=4)}
    if leaves == "all":
        made["everything"] = GlobalCount.spec(inputs={words: Grouping.GLOBAL})
    if leaves == "keys":
        made["keys"] = Aggregates.spec(inputs={made["counter"]: Grouping.GLOBAL})
    return type("Basic", (Topology,), {"config": {"topology.lint.off": "state-in-self"}, **made})


@everywhere
def test_a_basic_topology(where, request):
    counted = rows_of(basic(""), "counter", where, request)
    assert Counter(counted) == Counter([("nathan", 1), ("nathan", 2), ("bob", 1), ("joey", 1)])
    assert sorted(rows_of(basic("all"), "everything", where, request)) == [(1,), (2,), (3,), (4,)]
    assert max(rows_of(basic("keys"), "keys", where, request)) == (3,)


class Numbers(PartitionedSpout):
    """Two partitions, whose words are the same."""

    outputs = ["word string", "n long"]

    def partitions(self):
        return ["a", "b"]

    def latest(self, partition):
        return 50

    def open(self, partition, start, end):
        self.n, self.end = start, end

    def next_tuple(self):
        if self.n == self.end:
            return False
        self.emit([f"w{self.n % 5}", self.n], self.n)
        self.n += 1


class Places(Bolt):
    """How many tuples came to one place of the bolt, and of which words."""

    outputs = ["words array<string>", "tuples long"]

    def initialize(self, conf, context):
        self.words = Counter()

    def process(self, tup):
        self.words[tup.values.word] += 1
        self.emit([sorted(self.words), self.words.total()])


@pytest.mark.parametrize(
    ("where", "par"),
    [*((where, par) for where in ("task", 1, 4) for par in (1, 3)), pytest.param("spark", 3, marks=pytest.mark.spark)],
)
def test_a_fields_grouping_brings_equal_values_to_one_place(where, par, request):
    class Fields(Topology):
        config = {"topology.lint.off": "state-in-self"}
        numbers = Numbers.spec()
        places = Places.spec(inputs={numbers: Grouping.fields("word")}, par=par)

    rows = rows_of(Fields, "places", where, request)
    last = {}
    for words, tuples in rows:
        key = words[0]
        last[key] = max(last.get(key, (0, ())), (tuples, tuple(words)))
    ends = set(last.values())
    # A place has all tuples of its words, twenty for each.
    whole = {words: tuples for tuples, words in ends if tuples == 20 * len(words)}
    assert sorted(word for words in whole for word in words) == [f"w{n}" for n in range(5)]


class Seen(Bolt):
    outputs = ["n long"]

    def process(self, tup):
        self.emit([tup.values.n])


@pytest.mark.parametrize("tasks", [1, 4])
@pytest.mark.parametrize("par", [1, 3])
def test_an_all_grouping_brings_each_tuple_to_every_place(tasks, par):
    class All(Topology):
        numbers = Numbers.spec()
        seen = Seen.spec(inputs={numbers: Grouping.ALL}, par=par)

    rows = run_topology(All, scope="cluster", tasks=tasks).rows("seen")
    assert Counter(rows) == {(n,): 2 * tasks * par for n in range(50)}


class Single(JoinBolt):
    """storm-starter's SingleJoinBolt: genders and ages by id."""

    outputs = ["id long", "gender string", "age long", Stream(["id long"], name="alone")]

    def process_join(self, tups):
        self.emit([tups["genders"].values.id, tups["genders"].values.gender, tups["ages"].values.age])

    def process_expired(self, tups):
        for tup in tups.values():
            self.emit([tup.values.id], stream="alone")


class SingleJoin(Topology):
    genders = MemorySpout.spec(
        fields=["id long", "gender string"], rows=[[n, "male" if n % 2 == 0 else "female"] for n in range(10)]
    )
    ages = MemorySpout.spec(fields=["id long", "age long"], rows=[[n, n + 20] for n in range(9, -1, -1)])
    joined = Single.spec(inputs={genders: Grouping.fields("id"), ages: Grouping.fields("id")}, par=2)


@everywhere
def test_a_single_join(where, request):
    expected = [(n, "male" if n % 2 == 0 else "female", n + 20) for n in range(10)]
    assert sorted(rows_of(SingleJoin, "joined", where, request)) == expected
