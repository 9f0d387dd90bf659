"""What a task and the process that gives permits say to each other: JSON. Pure."""

import msgspec

from pystorm_source.types.json_values import JsonDecoder, utf8_json


class Wish(msgspec.Struct, omit_defaults=True):
    """``limit``: its name. ``wanted``: permits. ``good``, ``bad``: calls that have ended since the last wish;
    ``error``: of one of them. ``probe``: the number of a probe that has ended, 0: none; ``works``: how it ended, None:
    it was not made. ``openings``: of the circuit breaker, as far as the task knew when these calls ended. ``question``:
    the task's number of this wish."""

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
    """``now``: the sender's clock, in seconds, and so are the other times. ``first``, ``count``, ``apart``: permits;
    ``again``: it is no use to ask before; ``probe``: the number of the probe that is the permit, 0: none; ``paused``:
    seconds for which the service is not called; ``openings``: how often the circuit breaker has opened; ``question``:
    the number of the wish that is answered."""

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
