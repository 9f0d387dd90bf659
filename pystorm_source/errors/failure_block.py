"""The block that a user reads when a component raises: on Spark, in ``pystorm-source run``, in ``explain``.

component 'prices', task 2: process() raised ValueError: no price: two
  input:  tuple ('two',) of lines.default; offset 1; in partition '0' [0, 3) of spout 'lines'
  line:   File "/job/bolts.py", line 11, in process: raise ValueError(f"no price: {text}")
  remedy: correct the component and restart the query: with a checkpoint, it repeats this micro-batch; or ...
Traceback (most recent call last):
  ... the user's frames, and the exceptions that caused it
"""

import re
from typing import NamedTuple, Self

from pystorm_source.errors import LONGEST_TRACEBACK, TupleFailed, cut, one_line
from pystorm_source.errors.known_secrets import without_secrets
from pystorm_source.errors.user_frames import shown, users_line

_HEAD = re.compile(
    r"(?:\[(?P<code>[A-Z_]+)\]\s+|^)(?P<what>component '.*)\n"
    r"  input:  (?P<place>.*)\n(?:  line:   (?P<line>.*)\n)?  remedy: (?P<remedy>.*)$",
    re.MULTILINE,
)


class FailureBlock(NamedTuple):
    """``what``: component, task, method and exception. ``place``: the tuple, its offset, the range that was read.
    ``line``: the user's line; empty if unknown. ``frames``: the user's traceback; empty if nothing was raised.
    ``code``: the error's code."""

    what: str
    place: str
    line: str
    remedy: str
    frames: str = ""
    code: str = "PYSTORM_TUPLE_FAILED"

    @classmethod
    def of(cls, failed: TupleFailed) -> Self:
        """Builds the block from an error whose cause is the component's exception. Trims the cause's traceback."""
        cause = failed.__cause__
        line = users_line(cause) if cause is not None else ""
        frames = shown(cause) if cause is not None else ""
        what = one_line(str(failed.what or failed.args[0]))
        if "\n" not in frames and frames in what:
            frames = ""  # no traceback, and the message is already above
        parts = (what, one_line(failed.place) or "none", line, failed.remedy, frames)
        what, place, line, remedy, frames = map(without_secrets, parts)
        return cls(what, place, line, remedy, frames, failed.code)

    @classmethod
    def found_in(cls, text: str) -> "FailureBlock | None":
        """Finds the first block in a text that Spark made from it; without frames."""
        found = _HEAD.search(text)
        if found is None:
            return None
        code = found["code"] or cls._field_defaults["code"]
        return cls(found["what"], found["place"], found["line"] or "", found["remedy"], code=code)

    @property
    def head(self) -> str:
        """The lines that matter, without the code."""
        line = [f"  line:   {self.line}"] if self.line else []
        return "\n".join([self.what, f"  input:  {self.place}", *line, f"  remedy: {self.remedy}"])

    def __str__(self) -> str:
        text = f"[{self.code}] {self.head}"
        return cut(f"{text}\n{self.frames}", LONGEST_TRACEBACK) if self.frames else text
