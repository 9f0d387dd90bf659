"""A byte range of one file, read in a task: the file is looked up by what it is, whatever it is called by now.

find the inode ─► open ─► begins as planned? ─► read a block ─► still begins as planned? ─► its lines are emitted
     │                         │ no                                   │ no
     └── not there ────────────┴──────────► the copy that rotation has made of it: the same offsets, the same text
"""

import zlib
from collections.abc import Iterator

from pystorm_source.errors import DataLossError, WorldError
from pystorm_source.spouts.blocks.line_blocks import plain_blocks
from pystorm_source.spouts.files.identity.catalog import FileCatalog, FileEntry
from pystorm_source.spouts.files.identity.copies import Place, is_rotated_name, place_of
from pystorm_source.spouts.files.identity.identity import PREFIX_BYTES, FileIdentity, birth_mark, covered
from pystorm_source.spouts.files.identity.text import FileText, equal_part
from pystorm_source.spouts.files.reading.line_reader import gzip_blocks

# Too small: a file that is renamed again and again while its directory is listed counts as gone. Too large: it takes
# longer to say so.
ATTEMPTS = 20


class FileRange:
    """``FileRange(catalog, partition, start, end, header)``. ``header``: the first line is no record.

    ``path``: where the file was found. ``first_line``: of the file, read if ``header``. ``fixed``: all lines of a block
    have its offset. Raises DataLossError if the file is gone or was truncated, WorldError if it cannot be read.
    """

    def __init__(self, catalog: FileCatalog, partition: str, start: int, end: int, header: bool = False):
        self._catalog = catalog
        self._identity = identity = FileIdentity.parse(partition)
        self.gzipped = identity.gzipped
        self.fixed = identity.gzipped
        self.start = start
        self.end = end
        self.first_line = b""
        self._skip_line = False
        self._begin = b""
        self._text = self._opened()
        try:
            if header:
                self._read_header()
        except BaseException:
            self.close()
            raise

    @property
    def path(self) -> str:
        return self._text.path

    def blocks(self) -> Iterator[tuple[bytes, int]]:
        """(whole lines, offset of the first) in order; in a gzip file the offset of all of them."""
        if not self.gzipped:
            return plain_blocks(self._read, self.start, self.end, self.path)
        skip = 0 if self.start else self._identity.skip
        blocks = gzip_blocks(self._text.fd, self.start, self.end, self.path, skip)
        return _without_first_line(blocks) if self._skip_line else blocks

    def close(self) -> None:
        self._text.close()

    def _read(self, count: int, at: int) -> bytes:
        """Reads the text that was planned; if the file was truncated since, from the copy that has it."""
        for _ in range(ATTEMPTS):
            try:
                data = self._text.read(count, at)
            except (EOFError, zlib.error) as error:
                raise WorldError(
                    f"{self.path!r} is no whole gzip file: {error}. Given: [{self.start}, {self.end})",
                    code="PYSTORM_FILE_UNREADABLE",
                ) from error
            # A gzip file is written once; a text that was truncated since begins otherwise.
            if (data or at >= self.end) and (self._text.packed or self._text.raw_prefix().startswith(self._begin)):
                return data
            self._text.close()
            self._text = self._opened()
        raise self._lost(self.path)

    def _read_header(self) -> None:
        if self.gzipped:
            whole = gzip_blocks(self._text.fd, 0, self._text.size, self.path)
            self.first_line = next(whole, (b"", 0))[0].split(b"\n", 1)[0]
            self._skip_line = self.start == 0 and self._identity.skip == 0
            return
        first, at = b"", 0
        while b"\n" not in first and (data := self._read(1 << 16, at)):
            first, at = first + data, at + len(data)
        end = first.find(b"\n") + 1 or len(first)
        self.first_line = first[:end]
        self.start = min(max(self.start, end), self.end)

    def _opened(self) -> FileText:
        """The file, or the copy of it that rotation has made."""
        identity, catalog = self._identity, self._catalog
        around: object = None
        changed = ""
        for _ in range(ATTEMPTS):
            try:
                file = catalog.find(identity.inode, identity.hint)
                if file is not None:
                    text = FileText(file.path, identity.inode)
                    if self._is_planned(text, file):
                        return text
                    text.close()
                    changed = file.path  # truncated; or removed, and its inode taken by another file
                files = [] if self.gzipped else self._around()
                copy = self._copy_among(files)
            except FileNotFoundError:
                continue  # renamed since it was listed
            if copy is not None:
                return copy
            now = [(file.name, file.device, file.inode) for file in files], changed
            if now == around:
                break
            around = now
        raise self._lost(changed)

    def _is_planned(self, text: FileText, file: FileEntry) -> bool:
        born = None if self._identity.inode == 0 else birth_mark(self._catalog.born_ns(file))
        prefix = text.raw_prefix()
        self._begin = prefix[: covered(prefix, self._identity.crc)]
        return self._begin != b"" and text.size >= self.end and (born is None or self._identity.born in (None, born))

    def _around(self) -> list[FileEntry]:
        """What may be a copy: what lies beside the file, and what the catalog lists."""
        hint = self._identity.hint
        files = {file.path: file for file in [*self._catalog.scan(), *self._catalog.beside(hint)]}
        self._catalog.forget()  # a task's process stays, and hardly ever lists again
        return sorted(file for file in files.values() if file.gzipped or is_rotated_name(file.name, hint))

    def _copy_among(self, files: list[FileEntry]) -> FileText | None:
        """The copy that has the text of the range. Raises DataLossError if there are several, and they differ."""
        found: FileText | None = None
        for file in sorted(files, key=lambda file: file.gzipped):
            text = FileText(file.path, file.inode)
            if not self._has_range(text, file):
                text.close()
            elif found is None:
                found = text
            else:
                with text:
                    alike = found.path == text.path or equal_part(found, text, self.start, self.end) >= self.end
                if not alike:
                    found.close()
                    raise DataLossError(
                        f"{found.path!r} and {text.path!r} may both be what {self._identity.hint!r} has become, and "
                        f"they differ: remove the wrong one, or set failOnDataLoss=false. Given: "
                        f"{str(self._identity)!r}",
                        code="PYSTORM_DATA_LOST",
                    )
        return found

    def _has_range(self, text: FileText, file: FileEntry) -> bool:
        prefix, hint = text.prefix(), self._identity.hint
        length = covered(prefix, self._identity.crc)
        is_near = is_rotated_name(file.name, hint) and place_of(file.name, hint) is not Place.ELSEWHERE
        if length == 0 or not (length == PREFIX_BYTES or is_near):
            return False
        try:
            self._begin = prefix[:length]
            return self.end == 0 or text.read(1, self.end - 1) != b""
        except (EOFError, zlib.error):
            return False

    def _lost(self, changed: str) -> WorldError:
        anew = (
            f"{changed!r} was truncated or overwritten before it was read. Let rotation rename files (logrotate: "
            "create instead of copytruncate), keep the copies for longer, or set failOnDataLoss=false"
        )
        return lost_file(self._catalog, self._identity, anew if changed else "", "rotated files")


def lost_file(catalog: FileCatalog, identity: FileIdentity, changed: str, kept: str) -> WorldError:
    """Returns the error for a file that is not there as it was planned. ``changed``: what happened to it and what to
    do, "" if it is gone; ``kept``: which files to keep for longer then."""
    path, folder, _ = catalog.folder(identity.hint)
    if folder is None:
        return WorldError(
            f"the directory {path!r} is not there: mount it on every executor, under the same path. Given: "
            f"{str(identity)!r}",
            code="PYSTORM_FILE_UNREADABLE",
        )
    gone = (
        f"the file first seen as {identity.hint!r} under {catalog.root!r} is gone before it was read: keep {kept} for "
        "longer than the query may lag or stand still, and mount the directory on every executor; or set "
        "failOnDataLoss=false"
    )
    return DataLossError(f"{changed or gone}. Given: {str(identity)!r}", code="PYSTORM_DATA_LOST")


def _without_first_line(blocks: Iterator[tuple[bytes, int]]) -> Iterator[tuple[bytes, int]]:
    for data, offset in blocks:
        rest = data[data.find(b"\n") + 1 or len(data) :]
        if rest:
            yield rest, offset
        break
    yield from blocks
