"""Whether the offsets of a checkpoint are positions in the list that ``journal.path`` has."""

import re
from collections.abc import Mapping

from pystorm_source.errors import CheckpointError
from pystorm_source.errors.redaction import without_credentials
from pystorm_source.spouts.objects.log import ObjectLog

LANE = re.compile(r"lane-(\d\d)@([0-9a-f]{32})")
"""The name of a partition: its lane, and its list."""


def check(known: Mapping[str, int], id: str, log: ObjectLog, journal: str) -> None:
    """Raises CheckpointError for offsets that this list does not have: with another one they would mean other bytes."""
    for name, offset in known.items():
        found = LANE.fullmatch(name)
        if found is None or found[2] != id:
            raise _unfit("this checkpoint began without the option journal.path: unset it", journal)
        lane = int(found[1])
        if log.end(lane) < offset:
            log.forget()  # another process may have added to it
        if log.end(lane) < offset:
            raise _unfit(
                f"the list of known objects ends at {log.end(lane)} in lane {lane}, before offset {offset} of the "
                "checkpoint: set journal.path to the folder that this query has used so far, or restore that folder",
                journal,
            )


def without_list() -> CheckpointError:
    """The error of a query that had a list, and has no ``journal.path``."""
    return _unfit(
        "the offsets of this checkpoint are positions in a list below journal.path: set the option to the folder that "
        "this query has used so far",
        "",
    )


def _unfit(remedy: str, journal: str) -> CheckpointError:
    return CheckpointError(
        f"{remedy}, or give the query a new checkpointLocation, which reads all objects again. Given: "
        f"{without_credentials(journal)!r}",
        code="PYSTORM_CHECKPOINT_DAMAGED",
    )
