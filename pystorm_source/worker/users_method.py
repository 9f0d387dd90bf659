"""The name that the user gave to a call: the engine asks for a snapshot, and the user's ``latest`` raises."""

import traceback

from pystorm_source.api.spout import Spout

ENGINES = ("pystorm_source.api.", "pystorm_source.journal.")
"""Modules whose methods call the user's. Those of ready-made spouts count as the user's."""
CALLED = frozenset(
    {"initialize", "activate", "ack", "fail", "partitions", "earliest", "latest"}
    | {"first_cursor", "read", "row_key"}
    | {"receive", "acknowledge", "extend", "release", "message_key"}
)
"""Methods of a user that a method of ``ENGINES`` calls."""


def users_method(method: str, error: BaseException | None) -> str:
    """Returns the user's method that raised ``error`` in the engine's call of ``method``: the outermost one in the
    traceback; ``method`` if the traceback has no such method."""
    for frame, _ in traceback.walk_tb(None if error is None else error.__traceback__):
        name = frame.f_code.co_name
        if str(frame.f_globals.get("__name__")).startswith(ENGINES):
            method = "read" if name == "page_of" else method  # also where its answer is a generator, which raises later
        elif name in CALLED | {method} and isinstance(frame.f_locals.get("self"), Spout):
            return name
    return method
