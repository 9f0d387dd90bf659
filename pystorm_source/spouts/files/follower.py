"""What is to be read from the followed files: the driver's side of FilesSpout.

Files are renamed, packed and truncated while they are looked at, so one look proves nothing:

    list ─► look at each, by descriptor ─► nothing unusual ──────────────────────────────► answer
      ▲                                 └► one is gone, new, packed, truncated ─► list again ─► the same ─► answer
      └──────────────── one is not as it was listed, or the lists differ ◄──────────────────┘

The answer follows from the files, the clock, and ``known`` and ``memo`` alone, which both come out of Spark's offset;
objects of this class keep caches only. ``round`` is one way through this picture.
"""

import logging
from collections.abc import Mapping

from pystorm_source.api.partitioned_spout import Snapshot
from pystorm_source.clock import Clock
from pystorm_source.errors import WorldError
from pystorm_source.spouts.files.catalog import FileCatalog, FileEntry
from pystorm_source.spouts.files.head import HeadFinder, line_start
from pystorm_source.spouts.files.identity import FileIdentity, covered
from pystorm_source.spouts.files.options import FilesOptions
from pystorm_source.spouts.files.originals import Compared
from pystorm_source.spouts.files.round import Round
from pystorm_source.spouts.files.text import FileText

_FOREVER = 1 << 62
# Too small: a directory in which something is renamed all the time gives nothing new for a trigger. Too large: a
# trigger lists that directory as often.
_ATTEMPTS = 20


class FileFollower:
    """``FileFollower(options, catalog, clock, logger)``. ``by_path``: files are known by their names."""

    def __init__(self, options: FilesOptions, catalog: FileCatalog, clock: Clock, logger: logging.Logger):
        self.options = options
        self.catalog = catalog
        self.by_path = options.identity == "path"
        self.heads = HeadFinder(2 if options.header and options.format == "csv" else 1)
        self.compared: dict[tuple[object, object], Compared] = {}
        """(copy, original) → how much of their text is known to be equal."""
        self._clock = clock
        self._logger = logger
        self._births: dict[object, tuple[int, int | None]] = {}
        self._said: set[str] = set()
        self._where: dict[str, tuple[FileEntry, int]] = {}

    def snapshot(self, known: Mapping[str, int], memo: Mapping[str, int | str]) -> Snapshot:
        """As PartitionedSpout.snapshot. Raises DataLossError, WorldError; OptionError for foreign partitions."""
        hints = {FileIdentity.parse(partition).hint for partition in known}
        for _ in range(_ATTEMPTS):
            self.catalog.check_exists(hints)
            files = self.catalog.scan()
            self._forget_others({self.key(file) for file in files})
            found = Round(self, files, known, memo, round(self._clock.wall() * 1_000_000_000))
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
            return answer
        self.say(
            f"files below {self.catalog.root!r} were renamed, packed or removed quicker than they could be looked at, "
            f"{_ATTEMPTS} times: nothing is read of them until a look succeeds. If this stays so, and nothing moves "
            "there, the file system gives a file other inodes from look to look: set files.identity=path"
        )
        return Snapshot({partition: (0, offset) for partition, offset in known.items()}, dict(memo))

    def _forget_others(self, keys: set[object]) -> None:
        self.heads.begin_round(keys)
        for key in self._births.keys() - keys:
            del self._births[key]
        for pair in [pair for pair in self.compared if not keys.issuperset(pair)]:
            del self.compared[pair]

    def align(self, partition: str, start: int, end: int) -> int:
        """The begin of a line near ``end``; of a gzip file nothing but the whole."""
        identity = FileIdentity.parse(partition)
        if identity.gzipped:
            return start
        # If the file cannot be opened right now nothing is cut: a guess might lie inside of a line.
        for _ in range(_ATTEMPTS):
            file, head = self._where.get(partition) or (self.catalog.find(identity.inode, identity.hint), 0)
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

    def key(self, file: FileEntry) -> object:
        """What a file is called in caches."""
        return file.name if self.by_path else (file.device, file.inode)

    def born(self, file: FileEntry) -> int | None:
        """Birth time in ns; for files known by path, of which what changed is new whatever its birth, for ever ahead.

        Raises FileNotFoundError if the file is not where it was listed any more.
        """
        if self.by_path:
            return _FOREVER
        key = self.key(file)
        cached = self._births.get(key)
        if cached is None or cached[0] != file.changed_ns:
            cached = self._births[key] = (file.changed_ns, self.catalog.born_ns(file))
        return cached[1]

    def say(self, message: str) -> None:
        """Logs once."""
        if message not in self._said:
            self._said.add(message)
            self._logger.warning("%s", message)
