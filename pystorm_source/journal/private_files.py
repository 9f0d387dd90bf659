"""Files with rows, and their folders: for this user, and for a group if an option names one."""

import grp
import os
import pwd
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
        """Makes the folder and its parents. An existing folder keeps its owner's permissions."""
        if folder.is_dir():
            return
        if folder.parent != folder:
            self.make_folder(folder.parent)
        with suppress(FileExistsError):  # another task has made it
            folder.mkdir(mode=0o700)
            if self.name:
                self._give(folder)
                # Files that others make there belong to the group, too; x lets the group look inside.
                folder.chmod(0o2700 | self._bits | 0o010)

    def open(self, path: Path, flags: int = NEW) -> int:
        """Creates a file and returns its descriptor."""
        file = os.open(path, flags, 0o600)
        try:
            if self.name:
                self._give(file)
                os.fchmod(file, 0o600 | self._bits)
        except BaseException:
            os.close(file)
            path.unlink(missing_ok=True)
            raise
        return file

    def _give(self, target: Path | int) -> None:
        try:
            os.chown(target, -1, self._id())
        except PermissionError:
            raise OptionError(
                f"option {self._key!r} names a group of which the user that writes these files is a member, and "
                f"{_user(os.geteuid())} is none on {os.uname().nodename}: add it, or name another group. "
                f"Given: {self.name!r}",
                code="PYSTORM_INVALID_OPTION",
            ) from None

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


def group_remedy(path: Path, key: str) -> str:
    """How this user gets access to a file that another user has made: sentences that name the option ``key`` and its
    value. Empty if the file, or the folder for it, belongs to this user or does not exist."""
    owner, me = _owner(path), os.geteuid()
    if owner in (None, me):
        return ""
    shared = _groups(owner) & _groups(me)
    value = f"{key}={min(shared)}" if shared else f"{key} to a group of which both are members"
    return (
        f"User {_user(owner)} made it, and this process runs as {_user(me)}. Set {value}; a folder that is there "
        "already keeps its rights, so choose another one or give it to that group. "
    )


def _owner(path: Path) -> int | None:
    """The owner of the file, or of the folder above it that shuts this user out."""
    for each in (path, *path.parents):
        try:
            return each.stat().st_uid
        except FileNotFoundError:
            if each != path:
                return None
        except OSError:
            continue
    return None


def _user(number: int) -> str:
    with suppress(KeyError):
        return repr(pwd.getpwuid(number).pw_name)
    return str(number)


def _groups(user: int) -> set[str]:
    """The groups of a user, as far as this machine knows them."""
    try:
        name, own = pwd.getpwuid(user)[0], pwd.getpwuid(user).pw_gid
    except KeyError:
        return set()
    return {group.gr_name for group in grp.getgrall() if name in group.gr_mem or group.gr_gid == own}
