"""What processes tell each other besides reports: wishes for permits, kept states, what apply() has observed."""

import random
from collections.abc import Callable
from typing import Any

from msgspec import DecodeError

from pystorm_source.channel.leases.lease_server import LeaseServer
from pystorm_source.channel.leases.lessor import MOST_WANTED
from pystorm_source.channel.leases.messages import Granted, Wish, encode, granted_decoder
from pystorm_source.clock import ManualClock
from pystorm_source.errors import ArgumentError, ArgumentTypeError
from pystorm_source.operator.counts_of import counts_of
from pystorm_source.operator.report_column import REPORTS
from pystorm_source.options import EngineOptions, parse
from pystorm_source.states import RedisStore
from pystorm_source.states.value_text import ValueText
from tests.channel.reports.made_columns import columns
from tests.channel.reports.made_reports import body
from tests.mutations.json_faults import spoiled
from tests.mutations.outcomes import refused
from tests.operator.topologies import Doubles

OBSERVED = body(spout="rows", components=columns(2, buckets=2, metrics=2))
WISHES = [
    Wish("api", wanted=5),
    Wish("api", good=7, bad=2, error="TimeoutError: Sträßchen"),
    Wish("api", probe=1, works=True),
    Wish("api", wanted=1, probe=1, openings=1),
]
GRANTED = Granted("api", 12.5, first=12.75, count=3, apart=0.01, again=13.0, openings=1)
ENTRIES = [b'{"value":12.5,"txid":7,"previous":10.0}', b'{"value":{"a":[1,"x"]},"txid":0,"previous":null}']
KINDS = [None, None, None, int, float, str, dict[str, int], list[float]]


def mutated_wish(rng: random.Random) -> str:
    """Refused by an error, or answered; whatever it was, the next task gets its permits."""
    clock = ManualClock()
    server = LeaseServer(parse(EngineOptions, {"topology.rate.limit": '{"api": "1000/s"}'}), clock)
    clock.advance(60.0)
    body = encode(rng.choice(WISHES))
    outcome = _answered(lambda: server.answer("one", spoiled(body, rng)))
    clock.advance(120.0)
    said = [Wish("api", wanted=5), Wish("api", good=20), Wish("api", wanted=5, bad=1)]
    answers = [granted_decoder.decode(server.answer("two", encode(wish))) for wish in said]
    assert 1 <= answers[0].count <= 5, answers
    assert all(answer.limit == "api" and 0.0 <= answer.paused < 3600.0 for answer in answers)
    return outcome


def mutated_observed(rng: random.Random) -> str:
    """What ``counts_of`` is given of an operator."""
    sent = OBSERVED
    data = spoiled(sent, rng)
    try:
        counts_of(Doubles, {REPORTS: [data.decode(errors="surrogateescape")]})
    except (ArgumentError, ArgumentTypeError) as error:
        return refused(error)
    return "same" if data == sent else "other"


def _answered(answer: Callable[[], bytes]) -> str:
    try:
        granted = granted_decoder.decode(answer())
    except (DecodeError, KeyError):
        return "refused"
    assert 0 <= granted.count <= MOST_WANTED
    return "other"


def mutated_granted(rng: random.Random) -> str:
    sent = encode(GRANTED)
    try:
        found = granted_decoder.decode(spoiled(sent, rng))
    except DecodeError:
        return "refused"
    return "same" if found == GRANTED else "other"


def mutated_state(rng: random.Random) -> str:
    """An entry of a Redis, and its value: an error of ours, or a value that can be kept again."""
    store = RedisStore("redis://none", "totals")
    store._fields = ("value", "txid", "previous")
    value = ValueText(rng.choice(KINDS))
    sent = rng.choice(ENTRIES)
    data = spoiled(sent, rng)
    try:
        entry = store._entry(data, "key")
        found: Any = value.decode(entry.value)
        value.encode(found)
    except (ArgumentError, ArgumentTypeError) as error:
        return refused(error)
    return "same" if data == sent else "other"
