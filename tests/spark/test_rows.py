"""Which columns a topology gives, and how a user's schema is met."""

import re

import pyarrow as pa
import pytest
from pyspark.sql.types import CalendarIntervalType, IntegerType, LongType, StringType, StructField, StructType

from pystorm_source.errors import OptionError, SchemaError
from pystorm_source.options import SourceOptions
from pystorm_source.plan import compile_plan
from pystorm_source.spark.ddl import parse_type
from pystorm_source.spark.rows import Rows
from pystorm_source.spouts import MemorySpout
from pystorm_source.worker.output import ViewPlan
from tests.source import topologies


def rows(topology, **options):
    return Rows(compile_plan(getattr(topologies, topology)), SourceOptions(**options))


def struct(ddl):
    """`"a long, b string not null"`"""
    types = {"long": LongType(), "int": IntegerType(), "string": StringType()}
    fields = [part.split() for part in ddl.split(",")]
    return StructType([StructField(words[0], types[words[1]], len(words) == 2) for words in fields])


def names(schema):
    return [f"{field.name} {field.dataType.simpleString()}" for field in schema]


def test_declared_columns():
    ours = rows("Doubled")
    assert names(ours.schema()) == ["part string", "twice bigint"]
    output = ours.output(ours.schema())
    assert output.schema == pa.schema([("part", pa.string()), ("twice", pa.int64())])
    assert output.views == (ViewPlan("doubled", "default", (0, 1)),)


def test_metadata_comes_last():
    ours = rows("Doubled", include_metadata=True)
    assert names(ours.schema())[2:] == [
        "_component string",
        "_stream string",
        "_task int",
        "_partition string",
        "_offset bigint",
    ]
    assert ours.output(ours.schema()).views == (ViewPlan("doubled", "default", (0, 1), 2, 3, 4, 5, 6),)


def test_one_of_several_streams():
    ours = rows("Parted", stream="parted.odd")
    assert names(ours.schema()) == ["n bigint", "text string"]
    assert ours.output(ours.schema()).views == (ViewPlan("parted", "odd", (0, 1)),)


DEAD = "component string, reason string, attempts int, partition string, offset bigint, values string, time timestamp"


def buried(topology="Doubled", **options):
    """The rows of a topology whose dead letters are a stream."""
    plan = compile_plan(getattr(topologies, topology), {"topology.dead.letter": "stream"})
    return Rows(plan, SourceOptions(**options))


def test_dead_letters_that_nobody_reads_are_refused_with_every_way_out():
    with pytest.raises(OptionError, match=r"the dead letters .*numbers.__dead_letter.*streams=all.*doubled.default"):
        buried()
    with pytest.raises(OptionError, match=r"'stream' is .* Given: 'numbers'"):
        buried(stream="numbers")


def test_dead_letters_are_picked_by_their_full_name():
    assert ", ".join(names(buried(stream="numbers.__dead_letter").schema())) == DEAD
    assert names(buried(stream="doubled").schema()) == ["part string", "twice bigint"]


def test_dead_letters_are_among_all_streams():
    assert ", ".join(names(buried(streams="all").schema())) == (
        f"{DEAD}, part string, twice bigint, _component string, _stream string"
    )


def test_dead_letters_alone_are_the_one_open_stream():
    assert ", ".join(names(buried("Closed").schema())) == DEAD


def test_all_streams_are_a_union():
    ours = rows("Parted", streams="all")
    assert names(ours.schema()) == ["n bigint", "half double", "text string", "_component string", "_stream string"]
    assert ours.output(ours.schema()).views == (
        ViewPlan("parted", "even", (0, 1), 3, 4),
        ViewPlan("parted", "odd", (0, 2), 3, 4),
    )


def test_batch_rows_are_passed_on():
    ours = rows("Doubled", output_batch_rows=7)
    assert ours.output(ours.schema()).batch_rows == 7


def test_user_schema_reorders_and_leaves_out():
    assert rows("Doubled").output(struct("twice long, part string")).views[0].columns == (1, 0)
    assert rows("Doubled").output(struct("twice long")).views[0].columns == (-1, 0)
    assert rows("Parted", streams="all").output(struct("text string, _stream string")).views == (
        ViewPlan("parted", "even", (-1, -1), -1, 1),
        ViewPlan("parted", "odd", (-1, 0), -1, 1),
    )


def test_user_schema_does_not_tell_upper_from_lower_case():
    output = rows("Doubled").output(struct("TWICE long, Part string"))
    assert output.schema.names == ["TWICE", "Part"]
    assert output.views[0].columns == (1, 0)


def test_user_schema_may_ask_for_another_type_that_can_hold_it():
    assert rows("Doubled").output(struct("twice int, part string")).schema.field("twice").type == pa.int32()


def test_untyped_streams_take_the_users_types():
    with pytest.raises(
        SchemaError, match=r"stream untyped.default .*'part string' in `outputs`.*\.schema\('part string, n string'\)"
    ):
        rows("Untyped").schema()
    output = rows("Untyped").output(struct("n int, part string not null"))
    assert output.schema == pa.schema([pa.field("n", pa.int32()), pa.field("part", pa.string(), False)])
    assert output.views[0].columns == (1, 0)


def proposed(fields, **options):
    class Mixed(topologies.Topology):
        numbers = MemorySpout.spec(fields=fields)

    ours = Rows(compile_plan(Mixed), SourceOptions(**options))
    with pytest.raises(SchemaError) as raised:
        ours.schema()
    ddl = re.search(r"\.schema\('(.*?)'\)", str(raised.value)).group(1)
    ours.output(StructType([StructField(name, *parse_type(type, "")) for name, type in split(ddl)]))
    return ddl


def split(ddl):
    return [(name or quoted, type) for quoted, name, type in re.findall(r"(?:`(.*?)`|(\w+)) ([^,]+)", ddl)]


def test_the_proposed_schema_keeps_declared_types():
    assert proposed(["n long", "word", "tags array<string>"]) == "n bigint, word string, tags array<string>"
    assert proposed(["n long not null", "odd-name"]) == "n bigint not null, `odd-name` string"
    ddl = proposed(["n long", "word"], streams="all")
    assert ddl == "n bigint, word string, _component string, _stream string"


@pytest.mark.parametrize(
    ("topology", "options", "schema", "says"),
    [
        ("Doubled", {}, "n int, part string", r"out of \['part', 'twice'\].* Given: \['n', 'part'\]"),
        ("Doubled", {}, "twice int, TWICE long", r"each column once, .* Given: \['twice', 'TWICE'\]"),
        ("Doubled", {}, "part long", "column 'part' is declared string .* Given: 'bigint'"),
        ("Doubled", {}, "_offset long", r"\['_offset'\]: set includeMetadata=true"),
        ("Doubled", {"include_metadata": True}, "_offset int", "column '_offset' is of type bigint. Given: 'int'"),
        ("Parted", {"streams": "all"}, "text string not null", r"may not be null, but parted.even has no such field"),
    ],
)
def test_user_schema_that_does_not_fit(topology, options, schema, says):
    with pytest.raises(SchemaError, match=says):
        rows(topology, **options).output(struct(schema))


def test_empty_user_schema():
    with pytest.raises(SchemaError, match=r"a schema for doubled.default names each column once"):
        rows("Doubled").output(StructType([]))


def test_type_that_arrow_does_not_carry():
    with pytest.raises(SchemaError, match="column 'n' has a type that Arrow does not carry"):
        rows("Untyped").output(StructType([StructField("n", CalendarIntervalType())]))


@pytest.mark.parametrize(
    ("topology", "options", "error", "says"),
    [
        ("Closed", {}, OptionError, "no stream leaves this topology"),
        ("Parted", {}, OptionError, "several streams leave topology 'Parted': pick .* Given: parted.even, parted.odd"),
        ("Parted", {"stream": "parted"}, OptionError, "'stream' is .* of one open stream .* Given: 'parted'"),
        ("Parted", {"stream": "numbers"}, OptionError, "'stream' is .* Given: 'numbers'"),
        ("Parted", {"stream": "parted.odd", "streams": "all"}, OptionError, "exclude each other"),
        ("Clashing", {"streams": "all"}, SchemaError, "clashing.one and clashing.two declare field 'n' with different"),
        ("Misspelled", {}, SchemaError, "the type of field 'n' of misspelled.default .*'lnog'"),
    ],
)
def test_refused(topology, options, error, says):
    with pytest.raises(error, match=says):
        rows(topology, **options)


def test_a_field_may_not_be_called_like_metadata():
    class Spout(topologies.NumberSpout):
        outputs = ["_offset long"]

    class Named(topologies.Topology):
        spout = Spout.spec()

    plan = compile_plan(Named)
    assert names(Rows(plan, SourceOptions()).schema()) == ["_offset bigint"]
    with pytest.raises(SchemaError, match="'_offset' is a column of includeMetadata"):
        Rows(plan, SourceOptions(include_metadata=True))
