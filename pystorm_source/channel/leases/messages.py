"""The messages between a task and the process that gives permits: JSON. Pure."""

import msgspec

from pystorm_source.types.json_values import JsonDecoder, utf8_json


class Wish(msgspec.Struct, omit_defaults=True):
    """``limit``: its name. ``wanted``: permits. ``good``, ``bad``: calls that have ended since the last wish;
    ``error``: of one of them. ``probe``: the number of a probe that has ended, 0 for none; ``works``: whether it
    succeeded, None if it was not made. ``openings``: of the circuit breaker, as far as the task knew when these calls
    ended. ``question``: the task's number for this wish."""

    limit: str
    wanted: int = 0
    good: int = 0
    bad: int = 0
    error: str = ""
    probe: int = 0
    works: bool | None = None
    openings: int = 0
    question: int = 0


class Granted(msgspec.Struct, omit_defaults=True):
    """``now``: the sender's clock, in seconds; the other times are by it, too. ``first``, ``count``, ``apart``:
    permits; ``again``: asking before is useless; ``probe``: the number of the probe that the permit is for, 0 for none;
    ``paused``: seconds for which the service will not be called; ``openings``: how often the circuit breaker has
    opened; ``question``: the number of the wish that is answered."""

    limit: str
    now: float
    first: float = 0.0
    count: int = 0
    apart: float = 0.0
    again: float = 0.0
    probe: int = 0
    paused: float = 0.0
    openings: int = 0
    question: int = 0


wish_decoder: JsonDecoder[Wish] = JsonDecoder(Wish)
granted_decoder: JsonDecoder[Granted] = JsonDecoder(Granted)
encode = utf8_json
