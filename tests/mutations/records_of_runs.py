"""What a driver's other processes and people read of a run: its file of records, the answers to ``stacks``, its page.

A line that cannot be read is passed over, and those beside it are read; no reader raises for what a file or a socket
holds.
"""

import random
from pathlib import Path

import msgspec

from pystorm_source.observe.page.document import document
from pystorm_source.observe.page.runs import Runs
from pystorm_source.records.question import run_of
from pystorm_source.records.record import PystormProgress
from pystorm_source.records.record_file import Begin, End, RecordFile, last_lines
from pystorm_source.records.standstill import Asked, RangeState, TaskState, encoded
from tests.mutations.json_faults import spoiled
from tests.observe.page.runs import orders

BEGIN = msgspec.json.encode(Begin(topology="Orders", run="0123456789ab", began=1e9, process=1))
RECORDS = [orders(batch) for batch in range(3)]
END = msgspec.json.encode(End(ended=1e9))
BUSY = TaskState(component="slow", task=2, in_call=True, method="process", seconds=12.0, frames=("bolts.py:7 in f",))
RANGE = RangeState(run_id="r", place="partition 'a' [0, 9)", process=7, host="h", seconds=13.0, tasks=(BUSY,))
ASKED = Asked(topology="Shop", run="0123456789ab", process=1, asked=2, driver=("job.py:3 in f",))


class RunFiles:
    """A file of records in the folder, one of whose lines is a mutant."""

    def __init__(self, folder: Path):
        self._folder = folder / "runs"
        self._folder.mkdir()
        self._path = self._folder / "Orders-0123456789ab.jsonl"

    def mutated(self, rng: random.Random) -> str:
        lines = [BEGIN, *(record.to_json().encode() for record in RECORDS), END]
        at = rng.randrange(len(lines))
        sent, lines[at] = lines[at], spoiled(lines[at], rng).replace(b"\n", b" ")
        self._path.write_bytes(b"".join(line + b"\n" for line in lines))
        run = RecordFile(self._path).read()
        beside = [record for place, record in enumerate(RECORDS, 1) if place != at]
        assert all(record in run.records for record in beside), "a line that is whole is not read"
        assert len(run.records) <= len(RECORDS) + 1
        last_lines(self._path)
        document(Runs(self._folder).view(rng.choice(["", "x" * 16, "\udcff"]))).encode()
        try:
            PystormProgress.from_json(lines[at])
        except ValueError:
            return "refused"
        return "same" if lines[at] == sent else "other"


def mutated_answer(rng: random.Random) -> str:
    """Of a runner and two processes, one line of which is a mutant."""
    lines = [encoded(ASKED), encoded(RANGE), rng.choice([b"{}", encoded(RANGE)])]
    at = rng.randrange(3)
    sent, lines[at] = lines[at], spoiled(lines[at], rng).replace(b"\n", b" ")
    run = run_of(bytearray(b"".join(line + b"\n" for line in lines)))
    assert run is not None or not at, "the runner has told its name"
    if run is None:
        return "refused"
    str(run).encode(errors="surrogatepass")
    assert RANGE in run.ranges or at == 1
    assert len(run.ranges) + run.unreadable <= 2 and run.missing >= 0
    return "refused" if run.unreadable else "same" if lines[at] == sent else "other"
