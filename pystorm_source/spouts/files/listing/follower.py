"""What can be read from the followed files: the driver's side of FilesSpout.

Files are renamed, packed and truncated while they are looked at, so one look proves nothing:

    list ─► look at each, by descriptor ─► nothing unusual ──────────────────────────────► answer
      ▲                                 └► one is gone, new, packed, truncated ─► list again ─► the same ─► answer
      └──────────────── one is not as it was listed, or the lists differ ◄──────────────────┘

The answer depends only on the files, the clock, and ``known`` and ``state``, which both come from Spark's offset;
objects of this class only keep caches. ``round`` is one pass through this picture.
"""

import logging
from collections.abc import Mapping

from pystorm_source.api.partitioned_spout import Snapshot
from pystorm_source.api.uncollected import uncollected
from pystorm_source.clock import Clock
from pystorm_source.errors import WorldError
from pystorm_source.spouts.files.identity.catalog import FileCatalog, FileEntry
from pystorm_source.spouts.files.identity.head import line_start
from pystorm_source.spouts.files.identity.identity import FileIdentity, covered
from pystorm_source.spouts.files.identity.text import FileText
from pystorm_source.spouts.files.listing.cache import FileCache
from pystorm_source.spouts.files.listing.round import Round
from pystorm_source.spouts.files.options import FilesOptions

# Too small: a directory with constant renames gives nothing new for a trigger. Too large: a trigger lists that
# directory as often.
_ATTEMPTS = 20


class FileFollower:
    """``FileFollower(options, catalog, clock, logger)``."""

    def __init__(self, options: FilesOptions, catalog: FileCatalog, clock: Clock, logger: logging.Logger):
        self._catalog = catalog
        self._cache = FileCache(options, catalog)
        self._clock = clock
        self._logger = logger
        self._said: set[str] = set()
        self._where: dict[str, tuple[FileEntry, int]] = {}
        self._cuts: dict[str, list[int]] = {}  # of Parquet files that are not wholly planned

    def snapshot(self, known: Mapping[str, int], state: Mapping[str, int | str]) -> Snapshot:
        """As PartitionedSpout.snapshot. Raises DataLossError, WorldError; OptionError for foreign partitions."""
        with uncollected():
            return self._snapshot(known, state)

    def _snapshot(self, known: Mapping[str, int], state: Mapping[str, int | str]) -> Snapshot:
        self._cache.identify(known)
        for _ in range(_ATTEMPTS):
            self._catalog.check_exists(self._cache.identities.values())
            files = self._catalog.scan()
            if not (files or known):
                self.say(self._catalog.nothing_there())
            self._cache.keep(files)
            found = Round(self._cache, files, known, state, round(self._clock.wall() * 1_000_000_000))
            error: WorldError | None = None
            try:
                answer = found.run()
            except FileNotFoundError:
                continue
            except WorldError as raised:
                error = raised
            if (error is not None or found.is_doubtful) and not found.is_as_listed():
                continue
            if error is not None:
                raise error
            for message in found.warnings:
                self.say(message)
            self._where = found.where
            self._cuts = {name: self._cuts[name] for name in self._cuts.keys() & answer.heads.keys()}
            return answer
        self.say(
            f"files below {self._catalog.root!r} were renamed, packed or removed quicker than they could be looked at, "
            f"{_ATTEMPTS} times: nothing is read of them until a look succeeds. If this stays so, and nothing moves "
            "there, the file system gives a file other inodes from look to look: set files.identity=path"
        )
        return Snapshot({partition: (0, offset) for partition, offset in known.items()}, dict(state))

    def align(self, partition: str, start: int, end: int) -> int:
        """Returns where a line or row group begins near ``end``; ``start`` for a gzip file, which is never cut."""
        identity = FileIdentity.parse(partition)
        if self._cache.whole:
            return self._row_group_after(identity, partition, start, end)
        if identity.gzipped:
            return start
        # If the file cannot be opened right now nothing is cut: a guess might lie inside of a line.
        for _ in range(_ATTEMPTS):
            file, head = self._where.get(partition) or (self._catalog.find(identity.inode, identity.hint), 0)
            self._where.pop(partition, None)
            if file is None:
                continue
            try:
                with FileText(file.path, file.inode) as text:
                    cut = line_start(text.fd, start, end, max(head, end) if head else file.size)
                    if not covered(text.raw_prefix(), identity.crc):
                        break  # it was truncated: what lies there now is of another content
            except FileNotFoundError:
                continue
            self._where[partition] = (file, head)
            return cut
        return start

    def _row_group_after(self, identity: FileIdentity, partition: str, start: int, end: int) -> int:
        """Returns where a row group begins near ``end``; ``start`` if the file cannot be read."""
        from pystorm_source.spouts.blocks.row_groups import is_damage
        from pystorm_source.spouts.files.identity.parquet_file import ParquetFile

        if partition not in self._cuts:
            file = self._catalog.find(identity.inode, identity.hint)
            if file is None:
                return start
            try:
                with ParquetFile(file.path, identity.inode, identity.crc) as opened:
                    self._cuts[partition] = opened.cuts()
            except FileNotFoundError:
                return start
            except Exception as error:
                if not is_damage(error):
                    raise
                return start
        cuts = self._cuts[partition]
        before = [cut for cut in cuts if start < cut <= end]
        return before[-1] if before else next((cut for cut in cuts if cut > end), start)

    def say(self, message: str) -> None:
        """Logs once."""
        if message not in self._said:
            self._said.add(message)
            self._logger.warning("%s", message)
