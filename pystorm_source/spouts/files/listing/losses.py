"""What a round finds lost or unclear: an error, or with ``failOnDataLoss=false`` a warning, and the round goes on."""

from collections import defaultdict

from pystorm_source.errors import DataLossError, WorldError
from pystorm_source.spouts.files.identity.catalog import FileEntry
from pystorm_source.spouts.files.listing import departed
from pystorm_source.spouts.files.listing.known import Known
from pystorm_source.spouts.files.options import FilesOptions


class Losses:
    """``Losses(options, by_path)``. ``found``: whether anything is lost, which a second listing must confirm.

    Each method reports a finding. For a loss it raises DataLossError, or WorldError if the files may come back.
    """

    def __init__(self, options: FilesOptions, by_path: bool):
        self.found = False
        self._options = options
        self._by_path = by_path
        self._warnings: dict[str, list[str]] = defaultdict(list)

    @property
    def warnings(self) -> list[str]:
        """A message for each cause."""
        return [
            messages[0] if len(messages) == 1 else f"{messages[0]} (The same holds for {len(messages) - 1} others.)"
            for messages in self._warnings.values()
        ]

    def inside_a_line(self, file: FileEntry, offset: int) -> None:
        self._lose(
            "cut",
            f"offset {offset} of {file.path!r} lies inside a line. The file was truncated and overwritten (let "
            f"rotation rename files); or its last line was read without its end, because the file had not changed "
            f"for files.finished.after={self._options.finished_after}, and grew later (raise that); or "
            f"startingOffsets named an offset at which no line begins. With failOnDataLoss=false reading goes on "
            f"with the next line.",
        )

    def unclear(self, file: FileEntry, hint: str, likeness: str, given: str, by_birth: bool = False) -> None:
        """A file may be what a known one has become, or another one of the same text. ``by_birth``: birth times would
        tell.
        """
        why = "The file system tells no birth times, which would say it. "
        remedy = f"call it {hint + '.gz'!r}" if file.gzipped else "remove it"
        remedy = f"{why if by_birth else ''}If it is the same, {remedy}; if not"
        self._lose(
            "unclear",
            f"{file.path!r} {likeness}. It may be the same file, which rotation has renamed or copied, or a new one of "
            f"the same text: its name does not say which. {remedy}, let failOnDataLoss=false read it as a new file. "
            f"Given: {given!r}",
        )

    def several(self, first: FileEntry, other: FileEntry, which: Known, length: int) -> None:
        """They differ behind offset ``length``."""
        self._lose(
            "several",
            f"{first.path!r} and {other.path!r} may both be what {which.identity.hint!r} has become, and they "
            f"differ behind offset {length}, before offset {which.offset}, up to which that was read: remove "
            f"the wrong one. With failOnDataLoss=false the first one is read. Given: {which.partition!r}",
        )

    def truncated(self, file: FileEntry, which: Known) -> None:
        self._lose(
            "truncated",
            f"{file.path!r} was truncated or overwritten: it was read up to offset {which.offset}, now it has "
            f"{file.size} bytes, or other content, and no copy of the old file is beside it, so later lines "
            f"may be lost. {self._no_birth_times(which)}Let rotation rename files (logrotate: create instead of "
            f"copytruncate), or keep copies for longer. failOnDataLoss=false goes on with the new content.",
        )

    def written_anew(self, file: FileEntry, which: Known) -> None:
        """For a file that is read once it is complete."""
        self._lose(
            "written anew",
            f"{file.path!r} was overwritten: it was read up to offset {which.offset} of {which.seen}, and the rest of "
            f"its old content is gone. {self._no_birth_times(which)}Write new files under new names. With "
            f"failOnDataLoss=false reading goes on with the new content.",
        )

    def _no_birth_times(self, which: Known) -> str:
        """What else it may be if the file system tells no birth times."""
        if self._by_path or which.identity.born is not None:
            return ""
        return (
            "Or it was removed, and a new file of the same name got its inode, which cannot be told apart as the file "
            "system tells no birth times: give new files new names. "
        )

    def folder(self, path: str, which: Known) -> None:
        self._lose(
            f"folder {path}",
            f"the directory {path!r} is not there, or is empty and another one than before: was it renamed, or is "
            f"it not mounted? Files in it were being read; bring it back, or let the query go on without them by "
            f"failOnDataLoss=false. Given: {which.partition!r}",
            mounted=False,
        )

    def returned(self, file: FileEntry) -> None:
        self._lose(
            "returned",
            f"{file.path!r} changed after it was finished: it had not changed for files.finished.after="
            f"{self._options.finished_after} and had left the offset; or an old file was moved here. How much of "
            f"it was read is not known. Raise files.finished.after above any pause of its writer; copy old files "
            f"instead of moving them. With failOnDataLoss=false it is read again as a whole if it was written to "
            f"since, else passed over.",
        )

    def misnamed_gzip(self, file: FileEntry) -> None:
        """No loss: it is not read."""
        self._warn(
            "gzip",
            f"{file.path!r} is a gzip file by its first bytes and is not called *.gz: it is not read under this "
            f"name. Rename it, or give a glob that leaves it out.",
        )

    def forgotten(self, root: str) -> None:
        """No loss: files that return are read again."""
        self._warn(
            "forgotten",
            f"more than {departed.MOST} files below {root!r} have vanished of late: those that "
            f"vanished first are forgotten, and are read again if they return",
        )

    def _lose(self, cause: str, message: str, mounted: bool = True) -> None:
        """``cause``: thousands of files may share one; ``mounted``: else the files may come back."""
        if self._options.fail_on_data_loss:
            if mounted:
                raise DataLossError(message, code="PYSTORM_DATA_LOST")
            raise WorldError(message, code="PYSTORM_FILE_UNREADABLE")
        self.found = True
        self._warn(cause, message)

    def _warn(self, cause: str, message: str) -> None:
        self._warnings[cause].append(message)
