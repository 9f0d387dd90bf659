"""Options: every key of every table, with values that make no sense; and whole requests with some of them."""

import random
import typing
from pathlib import Path
from typing import Any

import msgspec

from docs import option_pages
from pystorm_source import PartitionedSpout
from pystorm_source.errors import PystormError
from pystorm_source.journal.options import JournalOptions
from pystorm_source.options import EngineOptions, SourceOptions, fields_of, parse
from pystorm_source.options.duration import parse_duration
from pystorm_source.source.offsets.positions import EARLIEST, Positions
from pystorm_source.source.request import ReadRequest
from pystorm_source.spark.plan_options import config_of
from tests.mutations.json_faults import spoiled
from tests.mutations.outcomes import refused
from tests.spouts.mutations import mutated

ODD = [
    *["", " ", "0", "-1", "1", "+1", "1_000", "1e3", "0x10", "nan", "inf", "-inf", "1.5", "٣", "true", "TRUE", "yes"],
    *["null", "None", "{}", "[]", '{"a": 1}', '"', "\0", "\n", "a" * 70_000, "[" * 5_000, "9" * 5_000, "2" * 19],
    *[
        "earliest",
        "latest",
        '{"numbers": {"a": 5}}',
        '{"numbers": {"a": -3}}',
        "../..",
        "/",
        "s3://b/k",
        "1 day",
        "\ud800",
    ],
]
CONFIGS = [
    b'{"topology.max.spout.retries": 5, "topology.dead.letter": "stream", "limits": {"api": [1, 2.5, null, true]}}',
    '{"greeting": "Sträßchen", "deep": {"a": {"b": []}}}'.encode(),
]
POSITIONS = [b'{"numbers": {"a": 5, "b": -1}}', b'{"a": 5}', b"earliest", '{"numbers": {"Sträßchen": 0}}'.encode()]
TABLES = [*option_pages.TABLES, *option_pages.of_spouts()]
KEYS = [(table, key) for table in TABLES for key in fields_of(table)]
OF_READERS = [(table, key) for table, key in KEYS if table in (SourceOptions, EngineOptions, JournalOptions)]


def value_of(rng: random.Random, table: Any, key: str) -> str:
    """Odd, or a changed form of the default or of one of the words that the key takes."""
    if rng.random() < 0.4:
        return rng.choice(ODD)
    field = fields_of(table)[key]
    words = [str(word) for word in _words(field.type)] or ["1000"]
    if field.default not in (None, msgspec.NODEFAULT, ""):
        words.append(str(field.default))
    data = mutated(rng.choice(words).encode(), rng)
    return data.decode(errors="surrogateescape") if rng.random() < 0.5 else data.decode(errors="replace")


def _words(hint: Any) -> list[Any]:
    if typing.get_origin(hint) is typing.Literal:
        return list(typing.get_args(hint))
    return [word for part in typing.get_args(hint) for word in _words(part)]


def mutated_option(rng: random.Random) -> str:
    """One key: refused, or read twice alike; what is read of its own text is the same."""
    table, key = rng.choice(KEYS)
    value = value_of(rng, table, key)
    needed = {name: "1" for name, field in fields_of(table).items() if field.required}
    if "subscribe" in fields_of(table) and key not in ("subscribe", "subscribePattern", "assign"):
        needed["subscribe"] = "topic"
    spelt = key.replace("*", "linger.ms") if key.endswith(".*") else key
    given = {**needed, (spelt.lower() if rng.random() < 0.5 else spelt): value}
    try:
        found = parse(table, given)
    except PystormError as error:
        return refused(error)
    read = getattr(found, fields_of(table)[key].name)
    assert parse(table, given) == found
    if isinstance(read, (bool, int, float)):
        assert parse(table, {**needed, key: str(read)}) == found, f"{read!r} of {value!r}"
    return "same" if read == fields_of(table)[key].default else "other"


def mutated_config(rng: random.Random) -> str:
    """The option ``config``: refused, or an object that JSON holds, read twice alike."""
    text = spoiled(rng.choice(CONFIGS), rng).decode(errors="surrogateescape")
    try:
        found = config_of(text)
    except PystormError as error:
        return refused(error)
    assert repr(config_of(text)) == repr(found)
    return "same" if text.encode(errors="surrogateescape") in CONFIGS else "other"


def mutated_position(rng: random.Random) -> str:
    """``startingOffsets``: refused, or ints of partitions that are named by text."""
    text = spoiled(rng.choice(POSITIONS), rng).decode(errors="surrogateescape")
    try:
        found = Positions.parse("startingOffsets", text, EARLIEST, {"numbers": PartitionedSpout})
    except PystormError as error:
        return refused(error)
    assert all(type(offset) is int and offset >= EARLIEST for offset in found.named.values())
    return "same" if text.encode(errors="surrogateescape") in POSITIONS else "other"


class Requests:
    """Whole sets of options, as ``.load()`` reads them."""

    def __init__(self, folder: Path):
        world = folder / "world"
        world.mkdir()
        (world / "a").write_text("[0, 10]")
        self._bases = [
            {"topology": "tests.source.topologies:Numbers", "path": str(world)},
            {"topology": "tests.source.topologies:Doubled", "path": str(world), "maxOffsetsPerTrigger": "7"},
            {
                "topology": "tests.source.journal_topologies:Messages",
                "path": str(world),
                "journal.path": str(folder / "journal"),
            },
        ]

    def mutated(self, rng: random.Random) -> str:
        """Refused, or a request whose parts are read alike a second time."""
        base = rng.choice(self._bases)
        given = dict(base)
        for _ in range(rng.randint(1, 3)):
            table, key = rng.choice(OF_READERS)
            given[key] = value_of(rng, table, key)
        if rng.random() < 0.3:
            key = rng.choice(sorted(given))
            given[mutated(key.encode(), rng).decode(errors="replace")] = given.pop(key)
        try:
            request = ReadRequest.of(given)
            request.check_streaming()
        except PystormError as error:
            return refused(error)
        assert request.max_trigger_delay == parse_duration("maxTriggerDelay", request.options.max_trigger_delay)
        assert ReadRequest.of(given).options == request.options
        return "other"
