"""Which files leave the Spark offset, so that it is as long as the list of active files and not of all files ever seen.

    ctime ──►   a.log   b.log   c.log   d.log      e.log           now - files.finished.after
                done    done    done    half read  being written
                                  ▲
                                  watermark: everything up to here is done

Files are done when they have not changed for ``files.finished.after`` and are wholly read. The watermark is the ctime
of the last file before the first one that is not done; known files up to it are retired, and files up to it that are
not known are passed over. It lags behind the clock by ``files.finished.after``, and whatever is written, created,
renamed or linked later gets a later ctime, so nothing that comes can slip in below it, even if clocks are adjusted by
less than that. So there are two groups of files above the watermark that are not known:

- born above it, too: they are new;
- born below it: retired files that changed after all, or files that were moved in from the same file system long after
  they were made; nothing tells these apart. They have *come back*, and their follower must decide.

A directory that is moved into a followed tree brings files whose own ctime is old: they are passed over where it lies
below the watermark. Move files, or copy.

Files that were seen before the watermark passed their birth and are not known yet (they are empty, or have no admitted
offset yet) would look as if they came back, so a note of each travels with the watermark.
Without birth times (some network file systems) files known by inode never retire: correct, but the offset keeps every
file that exists.
"""

from collections.abc import Iterable
from typing import NamedTuple


class FollowedFile(NamedTuple):
    """What retirement looks at. ``partition`` is None where the file is not known yet; ``done`` as above.

    ``note``: a name for it in the notes. ``keep``: it must not retire, even if it is done.
    """

    changed_ns: int
    done: bool
    partition: str | None
    note: str
    born_ns: int | None
    keep: bool = False


class Retirement(NamedTuple):
    """``watermark`` in nanoseconds since 1970, ``retired`` partitions, ``waiting`` notes."""

    watermark: int
    retired: frozenset[str]
    waiting: frozenset[str]


def retire(files: Iterable[FollowedFile], watermark: int, not_done: int | None = None) -> Retirement:
    """The retirement that these files allow. ``watermark``: the present one, 0 before the first. ``not_done``: the
    first ctime of other known files that are not done.
    """
    files = list(files)
    pending = [file.changed_ns for file in files if not file.done]
    barrier = min(pending if not_done is None else [*pending, not_done], default=None)
    passed = [file for file in files if barrier is None or file.changed_ns < barrier]
    watermark = max([watermark, *(file.changed_ns for file in passed)])
    return Retirement(
        watermark,
        frozenset(
            file.partition
            for file in passed
            if file.partition is not None and not file.keep and file.changed_ns <= watermark
        ),
        frozenset(
            file.note
            for file in files
            if file.partition is None and file.born_ns is not None and file.born_ns <= watermark
        ),
    )
