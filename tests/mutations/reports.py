"""Task reports: their frames, which carry a MAC, and bodies whose MAC is right though they are odd."""

import random
from contextlib import suppress

from msgspec import to_builtins

from pystorm_source.channel.reports.protocol import FrameReader, FrameRefused, frame
from pystorm_source.channel.reports.task_report import decode
from pystorm_source.counts.query_counts import QueryCounts
from pystorm_source.plan import compile_plan
from pystorm_source.records.fitting import MOST_BYTES, bytes_in_progress, fitting
from pystorm_source.worker.output import OutputPlan
from tests.channel.reports.made_columns import chain, columns
from tests.channel.reports.made_reports import TOKEN, body
from tests.mutations.json_faults import spoiled
from tests.spouts.mutations import mutated

NONCE = bytes(range(32))
BODIES = [
    body(),
    body(partition="Sträßchen", stalls={}),
    body(start=0, end=2**62, offsets=2**62),
    body(spout="s", components=columns(3, buckets=2, metrics=2)),
    body(spout="s", broken_off=True, components=columns(2, buckets=1)),
]
PLAN = compile_plan(chain(3))


def mutated_frame(rng: random.Random) -> str:
    """Two frames, the first one changed: what comes out is a beginning of what was sent."""
    sent = [rng.choice(BODIES), rng.choice(BODIES)]
    frames = [frame(TOKEN, NONCE, sequence, each) for sequence, each in enumerate(sent)]
    data = mutated(frames[0], rng) + frames[1]
    reader = FrameReader(TOKEN, NONCE)
    taken: list[bytes] = []
    cut = rng.randrange(len(data) + 1)
    try:
        for part in (data[:cut], data[cut:]):
            taken += reader.feed(part)
    except FrameRefused:
        pass
    assert taken == sent[: len(taken)]
    return "same" if len(taken) == 2 else "refused"


def mutated_report(rng: random.Random) -> str:
    """A body is refused by ValueError, or within the bounds of every field."""
    sent = rng.choice(BODIES)
    try:
        found = decode(spoiled(sent, rng), 1.0)
    except ValueError:
        return "refused"
    assert 0 <= found.offsets <= found.end - found.start < 2**63
    assert 0 < found.seconds <= 1e8
    assert all(0 <= seconds <= 1e8 for seconds in found.stalls.values())
    counts = QueryCounts(PLAN, OutputPlan.typed(PLAN), "run")
    counts.begin(found.batch, 1)
    with suppress(ValueError):  # of another plan
        counts.add(found)
    section = counts.topology()
    assert section is None or bytes_in_progress(to_builtins(fitting(section))) <= MOST_BYTES
    return "same" if found == decode(sent, 1.0) else "other"
