"""Dead letters in tables, and the rows that are made of them again, on a real Spark."""

import datetime
import json
import math
from decimal import Decimal

import pytest

from pystorm_source import Bolt, Hopeless, Input, Topology, apply, dead_letters, read, redrive_rows, register
from pystorm_source.errors import ArgumentTypeError, OptionError, SchemaError, TopologyError
from pystorm_source.spouts import MemorySpout
from pystorm_source.types.json_text import json_text

PATH = "topology.dead.letter.path"
LETTERS = "component string, reason string, attempts int, partition string, offset bigint, values string, "
LETTERS += "time timestamp, query string, batch bigint"
ROW = ["query", "batch", "component", "partition", "offset", "values"]

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]  # any may be the session's first


class Send(Bolt):
    """To a service that does not know all regions yet."""

    outputs = ["order long"]
    exit_on_exception = False
    known = frozenset({"eu"})

    def process(self, tup):
        if tup.values.region not in self.known:
            raise Hopeless(f"unknown region {tup.values.region}")
        self.emit([tup.values.order])


class Mended(Send):
    known = frozenset({"eu", "us"})


class Last(Bolt):
    def process(self, tup):
        """No rows leave a sink."""


class Sends(Topology):
    orders = Input.spec(["order long", "region string"])
    send = Send.spec(inputs=[orders])


class MendedSends(Topology):
    orders = Input.spec(["order long", "region string"])
    send = Mended.spec(inputs=[orders])


class Sink(Sends):
    last = Last.spec(inputs=[Sends.send])


class MendedSink(MendedSends):
    last = Last.spec(inputs=[MendedSends.send])


class Source(Topology):
    orders = MemorySpout.spec(fields=["order long", "region string"], rows=[[7, "eu"], [8, "us"], [9, "mars"]])
    send = Send.spec(inputs=[orders])


def orders(spark, *rows):
    return spark.createDataFrame(list(rows), "order long, region string").coalesce(1)


ORDERS = ((7, "eu"), (8, "us"), (9, "mars"))


def drain(frame, checkpoint, start):
    writer = frame.writeStream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    query = start(writer)
    assert query.awaitTermination(90), "the query did not end"


@pytest.fixture
def table(spark):
    yield "kept_letters"
    spark.sql("DROP TABLE IF EXISTS kept_letters")


@pytest.mark.every_spark
def test_from_a_failure_into_a_table_and_through_the_mended_topology(spark, tmp_path, table):
    folder = tmp_path / "dead"
    applied = apply(orders(spark, *ORDERS), Sends, options={PATH: str(folder)})
    assert [row.order for row in applied.collect()] == [7]

    def keep(checkpoint):
        drain(dead_letters(spark, folder, stream=True), tmp_path / checkpoint, lambda writer: writer.toTable(table))

    keep("checkpoint")
    keep("checkpoint")  # and nothing twice
    letters = spark.table(table)
    assert ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in letters.schema) == LETTERS
    found = letters.orderBy("offset").collect()
    assert [(row.component, row["values"], row.attempts, row.partition, row.offset) for row in found] == [
        ("send", '[8, "us"]', 1, "0", 1),
        ("send", '[9, "mars"]', 1, "0", 2),
    ]
    assert all(isinstance(row.time, datetime.datetime) and row.query and row.batch == 0 for row in found)

    again = redrive_rows(letters.where("reason LIKE 'unknown region%'"), MendedSends)
    assert again.columns[:3] == ["order", "region", "component"]
    done = apply(again, MendedSends, keep=["reason"], key=["query", "batch", "partition", "offset"], options={
        PATH: str(tmp_path / "dead again")
    })  # fmt: skip
    assert [tuple(row) for row in done.collect()] == [("unknown region us", 8)]

    letters_of_both = letters.unionByName(dead_letters(spark, tmp_path / "dead again"))
    tried = letters_of_both.groupBy("component", "values").agg({"attempts": "sum", "*": "count"}).collect()
    assert sorted(map(tuple, tried)) == [("send", '[8, "us"]', 1, 1), ("send", '[9, "mars"]', 2, 2)]


def test_a_table_of_the_files_themselves(spark, tmp_path, table):
    orders(spark, *ORDERS).write.format(register(spark, Sink)).option(PATH, str(tmp_path)).mode("append").save()
    (tmp_path / ".of-a-task-at-work.tmp").write_text("{")
    spark.sql(f"CREATE TABLE {table} ({LETTERS}) USING json LOCATION '{tmp_path}'")
    assert spark.table(table).schema == dead_letters(spark, tmp_path).schema
    found = spark.sql(f"SELECT values, offset FROM {table} WHERE reason LIKE '%mars' AND attempts = 1").collect()
    assert list(map(tuple, found)) == [('[9, "mars"]', 2)]


def test_letters_of_a_stream_into_a_sink(spark, tmp_path):
    """Query and micro-batch are those of the stream; what fails again goes on failing, once each time."""
    orders(spark, *ORDERS).write.parquet(str(tmp_path / "in"))
    first, second = tmp_path / "first", tmp_path / "second"

    def write(frame, topology, checkpoint, folder):
        drain(frame, tmp_path / checkpoint,
              lambda writer: writer.format(register(spark, topology)).option(PATH, str(folder)).start())  # fmt: skip

    write(spark.readStream.schema("order long, region string").parquet(str(tmp_path / "in")), Sink, "c1", first)
    letters = dead_letters(spark, first).collect()
    assert {(row.query, row.batch) for row in letters} == {
        (json.loads((tmp_path / "c1/metadata").read_text())["id"], 0)
    }
    write(redrive_rows(dead_letters(spark, first, stream=True), MendedSink), MendedSink, "c2", second)
    assert [row["values"] for row in dead_letters(spark, second).collect()] == ['[9, "mars"]']


def test_rows_that_were_run_twice_are_the_same_letters(spark, tmp_path):
    """Two rows alike are two. Each action leaves its files."""
    frame = orders(spark, *ORDERS, (8, "us"))
    spark_rows = apply(frame, Sends, options={PATH: str(tmp_path)})
    for _ in range(2):
        spark_rows.collect()
    letters = dead_letters(spark, tmp_path)
    assert letters.count() == 6
    once = letters.dropDuplicates(ROW)
    assert sorted(row["values"] for row in once.collect()) == ['[8, "us"]', '[8, "us"]', '[9, "mars"]']


def test_letters_of_a_source_and_of_a_stream_of_letters(spark, tmp_path):
    read(spark, Source, options={PATH: str(tmp_path / "dead")}).collect()
    rows = read(spark, Source, stream="orders.__dead_letter", options={"topology.dead.letter": "stream"})
    for letters in (dead_letters(spark, tmp_path / "dead"), rows):
        again = redrive_rows(letters.where("reason LIKE '%us'"), MendedSends)
        assert [row.order for row in apply(again, MendedSends).collect()] == [8]
    rows.write.json(str(tmp_path / "json"))
    assert sorted(row["values"] for row in dead_letters(spark, tmp_path / "json").collect()) == [
        '[8, "us"]',
        '[9, "mars"]',
    ]


AT = datetime.datetime(2026, 3, 1, 12, 30, 15, 123456)
TYPED = {
    "a boolean": True,
    "b double": 1.5,
    "c string": "NaN",
    "d binary": b"\x00\xff",
    "e date": AT.date(),
    "f timestamp": AT.replace(tzinfo=datetime.UTC),
    "g decimal(5,2)": Decimal("1.25"),
    "h array<int>": [1, None],
    "i struct<n:int,in:struct<s:string not null>>": {"n": 1, "in": {"s": "ü"}},
    "j long": 2**53 + 1,
    "k map<int,string>": {1: "one"},
    "l float": 0.5,
    "m timestamp_ntz": AT,
    "values tinyint": None,
}


class Typed(Topology):
    rows = Input.spec(list(TYPED))


@pytest.mark.spark40
def test_values_are_of_exactly_the_declared_types_again(spark, tmp_path):
    """Also where the session has another zone, and a field has the name of a letter's column."""
    (tmp_path / "a.jsonl").write_text(json.dumps({"component": "x", "values": json_text(TYPED.values())}) + "\n")
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        again = redrive_rows(dead_letters(spark, tmp_path), Typed)
        assert again.columns.count("values") == 1
        fields = [f"{field.name} {field.dataType.simpleString()}" for field in again.schema]
        wanted = spark.createDataFrame([], ", ".join(TYPED)).schema
        assert fields[: len(TYPED)] == [f"{field.name} {field.dataType.simpleString()}" for field in wanted]
        (row,) = again.selectExpr("*", "date_format(f, 'X HH:mm:ss.SSSSSS') AS at").collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    found = row.asDict(recursive=True)
    assert (found.pop("at"), found.pop("f") is not None) == ("-05 07:30:15.123456", True)
    expected = {name.split()[0]: value for name, value in TYPED.items() if not name.startswith("f ")}
    assert {name: found[name] for name in expected} == expected


class Measures(Topology):
    rows = Input.spec(["a double", "b array<float>", "c string", "d map<string,double>"])


def test_floats_that_json_does_not_have(spark):
    values = (math.nan, [math.inf, -math.inf, 0.5], "Infinity", {"NaN": math.nan})
    letters = spark.createDataFrame([(json_text(values),)], "values string")
    (row,) = redrive_rows(letters, Measures).drop("values").collect()
    assert math.isnan(row.a)
    assert (row.b, row.c) == ([math.inf, -math.inf, 0.5], "Infinity")
    assert math.isnan(row.d["NaN"])


class Strict(Topology):
    rows = Input.spec(["id long not null", "item string"])


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ('["7", "hat"]', "Expected `int`, got `str`"),
        ("[7.5, null]", "Expected `int`, got `float`"),
        ("[7]", "the letter has 1 values, and 2 fields are declared"),
        ("[null, null]", "Expected `int`, got `null`"),
        ('{"id": 7}', "no dead letter"),
        (None, "it has no values"),
    ],
)
def test_values_that_do_not_fit_name_their_letter(spark, values, said):
    columns = "component string, values string, query string, batch long, partition string, offset long"
    letters = spark.createDataFrame([("send", values, "q", 4, "3", 17)], columns)
    with pytest.raises(Exception, match="PYSTORM_MALFORMED_RECORD") as raised:
        redrive_rows(letters, Strict).collect()
    told = str(raised.value)
    assert said in told
    assert (
        "the dead letter of component send, query q, batch 4, partition 3, offset 17 is no row of input 'rows'" in told
    )
    assert f"Given: {values!r}" in told


class Untyped(Topology):
    rows = Input.spec(["id long", "item"])


def test_what_is_refused(spark, tmp_path):
    letters = spark.createDataFrame([("[1]",)], "values string")
    with pytest.raises(SchemaError, match="fewer types than Spark: declare the type of field 'item'"):
        redrive_rows(letters, Untyped)
    with pytest.raises(TopologyError, match=r"begin it with rows = Input\.spec"):
        redrive_rows(letters, Source)
    with pytest.raises(SchemaError, match=r"have a column 'values', string.*Given: struct<id:bigint>"):
        redrive_rows(spark.range(1), Sends)
    with pytest.raises(ArgumentTypeError, match="the letters come first"):
        redrive_rows(Sends, letters)
    with pytest.raises(ArgumentTypeError, match="the session comes first"):
        dead_letters("/data/dead", spark)
    with pytest.raises(ArgumentTypeError, match="path is that of a folder"):
        dead_letters(spark, Sends)


@pytest.mark.every_spark
def test_a_folder_that_is_empty_or_not_there(spark, tmp_path):
    assert dead_letters(spark, tmp_path).count() == 0
    for stream in (False, True):
        with pytest.raises(OptionError, match=r"the first one makes it\. Create it to begin before"):
            dead_letters(spark, tmp_path / "none", stream=stream)


def test_a_line_that_is_no_letter_is_an_error(spark, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"values": "[1]", "attempts": "many"}\n')
    with pytest.raises(Exception, match=r"a\.jsonl"):
        dead_letters(spark, tmp_path).collect()
