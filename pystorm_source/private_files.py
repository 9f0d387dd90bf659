"""Files that hold rows, and their folders: for this user, and for a group if an option names one."""

import grp
import os
from contextlib import suppress
from pathlib import Path

from pystorm_source.errors import OptionError

NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class FileGroup:
    """``name``: name or number of the group; empty for none. ``key``: the option that names it. ``may_write``: the
    group may write, too. Methods raise OSError, and OptionError for a group that this machine does not know."""

    def __init__(self, name: str = "", key: str = "", may_write: bool = False):
        self.name = name
        self._key = key
        self._bits = 0o060 if may_write else 0o040

    def __reduce__(self) -> tuple[type["FileGroup"], tuple[str, str, bool]]:
        return type(self), (self.name, self._key, self._bits == 0o060)

    def make_folder(self, folder: Path) -> None:
        """Makes the folder and those above it. An existing one keeps what its owner has set."""
        if folder.is_dir():
            return
        if folder.parent != folder:
            self.make_folder(folder.parent)
        with suppress(FileExistsError):  # another task has made it
            folder.mkdir(mode=0o700)
            if self.name:
                os.chown(folder, -1, self._id())
                # Files made there by others are the group's, too; x, to look inside.
                folder.chmod(0o2700 | self._bits | 0o010)

    def open(self, path: Path, flags: int = NEW) -> int:
        """A new file's descriptor."""
        file = os.open(path, flags, 0o600)
        try:
            if self.name:
                os.fchown(file, -1, self._id())
                os.fchmod(file, 0o600 | self._bits)
        except BaseException:
            os.close(file)
            path.unlink(missing_ok=True)
            raise
        return file

    def _id(self) -> int:
        if self.name.isdigit():
            return int(self.name)
        try:
            return grp.getgrnam(self.name).gr_gid
        except KeyError:
            raise OptionError(
                f"option {self._key!r} names a group of every machine that writes these files, and "
                f"{os.uname().nodename} has none of that name: make it, or give its number. Given: {self.name!r}",
                code="PYSTORM_INVALID_OPTION",
            ) from None


OWN = FileGroup()
"""For this user only."""
