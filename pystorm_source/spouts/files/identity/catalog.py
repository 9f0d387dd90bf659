"""Which files there are: a directory, a file or a glob, listed with one stat per file."""

import contextlib
import operator
import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from pystorm_source.errors import OptionError, WorldError
from pystorm_source.spouts.files.identity.birth_time import birth_time_ns
from pystorm_source.spouts.files.identity.identity import FileIdentity, birth_mark, family
from pystorm_source.spouts.files.options import local_path
from pystorm_source.spouts.glob_names import compiled

# Braces without a comma are a name's own, as in a shell.
_MAGIC = re.compile(r"[*?\[]|\{[^{}]*,[^{}]*\}")
_ACROSS = re.compile(r"\{[^{}]*/[^{}]*,[^{}]*\}|\{[^{}]*,[^{}]*/[^{}]*\}")


_name_of = operator.itemgetter(0)


class FileEntry(NamedTuple):
    """A regular file. ``name``: relative to the catalog's root. ``changed_ns``: ctime, of the symbolic link too."""

    name: str
    path: str
    device: int
    inode: int
    size: int
    changed_ns: int
    modified_ns: int

    @property
    def gzipped(self) -> bool:
        return self.name.endswith(".gz")


class FileCatalog:
    """``FileCatalog(path, recursive, gzip, by_path)``.

    A directory stands for its files except those called ``.…`` and ``_…`` (marks such as ``_SUCCESS``); a glob for
    what it matches: ``*``, ``?``, ``[…]`` and ``{a,b}`` inside one name, ``**`` over any number of directories. A file
    that several names lead to (links) is listed once, unless ``by_path``. Raises OptionError for a path of another file
    system.

    ``lost``: counts files that an earlier listing had under a name, and a later one had not.
    """

    def __init__(self, path: str, recursive: bool = False, gzip: bool = True, by_path: bool = False):
        self.given = path
        self.lost = 0
        self._listed: dict[str, dict[str, FileEntry]] = {}
        self._files: list[FileEntry] = []
        self._inodes: set[int] | None = set()  # of these files; None: several have the same one
        self._recursive = recursive
        self._gzip = gzip
        self._by_path = by_path
        self._full = os.path.abspath(local_path(path))
        if _ACROSS.search(self._full):
            raise OptionError(
                "option 'path' of a FilesSpout has a / between braces, and {a,b} is a choice inside one name: use ** "
                f"for several directories, or a spout for each. Given: {path!r}",
                code="PYSTORM_INVALID_OPTION",
            )
        parts = self._full.split(os.sep)
        magic = next((i for i, part in enumerate(parts) if _MAGIC.search(part)), None)
        self.globbed = magic is not None
        if self.globbed:
            self.root = os.sep.join(parts[:magic]) or os.sep
            self._steps = [None if part == "**" else compiled(part, shell=True) for part in parts[magic:]]
            if self._steps[-1] is None:
                self._steps.append(compiled("*", shell=True))
        else:
            self.root = os.path.dirname(self._full)
            self._steps = [re.compile(re.escape(os.path.basename(self._full)))]
            self._find_root()

    def _find_root(self) -> None:
        """A path that is no directory may become one: it is mounted later, or was not for a moment."""
        if not self.globbed and self.root != self._full and os.path.isdir(self._full):
            self.root = self._full
            visible = re.compile(r"[^._].*", re.DOTALL)
            self._steps = [None, visible] if self._recursive else [visible]
            self.forget()  # names were relative to another root
            self.lost += 1

    def forget(self) -> None:
        """Frees what is remembered of the last listing: half a kilobyte per file."""
        self._listed, self._files, self._inodes = {}, [], set()

    def check_exists(self, seen: Collection[FileIdentity]) -> None:
        """Raises OptionError if there is nothing to follow, WorldError if there was: files ``seen``. A glob may match
        later; so may one file that rotation has taken away for a moment, and has left its older ones.
        """
        if self.globbed or os.path.exists(self._full):
            return
        name = os.path.basename(self._full)
        if os.path.isdir(os.path.dirname(self._full)) and name in {
            family(other) for other in (*(one.hint for one in seen), *(file.name for file in self.beside(name)))
        }:
            return
        if seen:
            raise WorldError(
                f"{self.given!r}, in which files were being read, is missing on {os.uname().nodename}: was it renamed, "
                f"or is it not mounted?",
                code="PYSTORM_FILE_UNREADABLE",
            )
        raise OptionError(
            f"option 'path': no such file or directory on {os.uname().nodename}; create it first, or give a glob, "
            f"which may match later. Given: {self.given!r}",
            code="PYSTORM_INVALID_OPTION",
        )

    def nothing_there(self) -> str:
        """What to say if there is no file yet."""
        where = f"no file matches {self._full!r}" if self.globbed else f"there is no file to read in {self._full!r}"
        deeper = "" if self.globbed or self._recursive else ", files.recursive=true if they lie in folders of it"
        return f"{where} on {os.uname().nodename}: files that come are read; if there are some, correct 'path'{deeper}"

    def scan(self) -> list[FileEntry]:
        """The files that match now, each once, ordered by name. Raises WorldError where the root cannot be listed.

        A file that is as the last listing saw it is the same object again. Do not change the list.
        """
        self._find_root()
        known_by_path = self._by_path
        listed: dict[str, dict[str, FileEntry]] = {}
        fresh: list[FileEntry] = []
        gone: list[FileEntry] = []
        for prefix, entries in self._walk(self.root, "", 0, set()):
            if prefix in listed:
                continue  # several ** lead here
            # A dictionary for each folder: one for a million files would not stay in the processor's caches.
            before = self._listed.get(prefix, {})
            found = listed[prefix] = {}
            new: dict[str, FileEntry] = {}
            for entry in entries:
                name = entry.name
                file = before.get(name)
                if file is None and not self._fits(name):
                    continue
                try:
                    seen = entry.stat()
                except OSError:
                    continue
                if file is not None:
                    _, _, device, inode, size, changed_ns, modified_ns = file
                    if (
                        seen.st_ctime_ns == changed_ns
                        and seen.st_size == size
                        and seen.st_mtime_ns == modified_ns
                        and ((seen.st_ino == inode and seen.st_dev == device) or known_by_path)
                        and stat.S_ISREG(seen.st_mode)
                        and not entry.is_symlink()
                    ):
                        found[name] = file
                        continue
                state = _stat(entry)
                if state is not None:
                    path = prefix + name
                    file = FileEntry(path, os.path.join(self.root, path), *state)
                    new[name] = found[name] = file._replace(device=0, inode=0) if known_by_path else file
            fresh += [file for name, file in new.items() if found[name] is file]
            if len(found) != len(before) + len(new):
                gone += [file for name, file in before.items() if found.get(name) is not file]
        for prefix in self._listed.keys() - listed.keys():
            gone += self._listed[prefix].values()
        self._listed = listed
        if fresh or gone:
            self._files = self._merged(fresh, gone)
        return self._files

    def _fits(self, name: str) -> bool:
        """Whether files of this name are listed, in a folder that the other steps lead to."""
        if not self._gzip and name.endswith(".gz"):
            return False
        return self._steps[-1].fullmatch(name) is not None  # type: ignore[union-attr]

    def _merged(self, fresh: list[FileEntry], gone: list[FileEntry]) -> list[FileEntry]:
        """The listed files in order, once ``gone`` ones left the last listing, and ``fresh`` ones came."""
        left = {id(file) for file in gone}
        files = [file for file in self._files if id(file) not in left] if gone else self._files
        # Nearly in order: sorting takes one comparison per file.
        files = sorted([*files, *sorted(fresh)], key=_name_of)
        came = {(file.name, file.device, file.inode) for file in fresh}
        self.lost += sum((file.name, file.device, file.inode) not in came for file in gone)
        return files if self._by_path or self._are_others(fresh, gone) else self._each_once(files)

    def _are_others(self, fresh: list[FileEntry], gone: list[FileEntry]) -> bool:
        """Whether the fresh files are surely other ones than those listed; notes their inodes then."""
        if self._inodes is None:
            return False
        self._inodes.difference_update(file.inode for file in gone)
        inodes = {file.inode for file in fresh}
        if len(inodes) < len(fresh) or not self._inodes.isdisjoint(inodes):
            return False
        self._inodes |= inodes
        return True

    def _each_once(self, files: list[FileEntry]) -> list[FileEntry]:
        """Keeps the first of the names that lead to the same file. The others are fresh again in the next listing."""
        first: dict[tuple[int, int], FileEntry] = {}
        for file in files:
            if first.setdefault((file.device, file.inode), file) is not file:
                folder, slash, name = file.name.rpartition("/")
                del self._listed[folder + slash][name]
                self.lost += 1
        inodes = {inode for _, inode in first}
        self._inodes = inodes if len(inodes) == len(first) else None
        return list(first.values())

    def path_of(self, hint: str) -> str:
        """The path of a file that was first seen as ``hint``, whatever it is called by now."""
        self._find_root()
        return os.path.join(self.root, hint)

    def find(self, inode: int, hint: str) -> FileEntry | None:
        """Finds the file with this inode: at its first name, then under any name in that directory, then anywhere in
        the catalog. Inode 0: the file at ``hint``.
        """
        return self.find_all({inode: hint}).get(inode)

    def find_all(self, wanted: Mapping[int, str]) -> dict[int, FileEntry]:
        """As ``find``, for inode → hint: one listing, however many are wanted. A file that is renamed while its
        directory is listed may be missed.
        """
        self._find_root()
        found = {}
        folders: dict[str, None] = {}
        for inode, hint in wanted.items():
            first = os.path.join(self.root, hint)
            try:
                seen = os.stat(first)
                if inode in (0, seen.st_ino) and stat.S_ISREG(seen.st_mode):
                    times = seen.st_ctime_ns, seen.st_mtime_ns
                    found[inode] = FileEntry(hint, first, seen.st_dev, inode, seen.st_size, *times)
                    continue
            except OSError:
                pass
            folders.update({os.path.dirname(first): None, os.path.dirname(os.path.realpath(first)): None})
        if len(found) == len(wanted):
            return found  # before anything is listed: every task of a folder of 10,000 files looks for one of them
        for entry, path in self._everywhere(folders):
            if len(found) == len(wanted):
                break
            inode = entry.inode()
            if inode in wanted and inode not in found and (known := _stat(entry)) is not None and known[1] == inode:
                found[inode] = FileEntry(os.path.relpath(path, self.root), path, *known)
        return found

    def _everywhere(self, folders: Iterable[str]) -> Iterator[tuple[os.DirEntry[str], str]]:
        """Yields the entries of these folders, then of the catalog, and their paths."""
        for folder in folders:
            try:
                with os.scandir(folder) as scanned:
                    yield from ((entry, entry.path) for entry in scanned)
            except OSError:
                continue
        for prefix, entries in self._walk(self.root, "", 0, set()):
            for entry in entries:
                if self._steps[-1].fullmatch(entry.name):  # type: ignore[union-attr]
                    yield entry, os.path.join(self.root, prefix + entry.name)

    def beside(self, hint: str) -> list[FileEntry]:
        """The files in the directory of ``hint`` (and of its target, if it is a link), whether they match or not."""
        self._find_root()
        first = os.path.join(self.root, hint)
        found: dict[tuple[int, int], FileEntry] = {}
        for folder in {os.path.dirname(first), os.path.dirname(os.path.realpath(first))}:
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        if (seen := _stat(entry)) is not None:
                            file = FileEntry(os.path.relpath(entry.path, self.root), entry.path, *seen)
                            found.setdefault((file.device, file.inode), file)
            except OSError:
                continue
        files = sorted(found.values())
        return [file._replace(device=0, inode=0) for file in files] if self._by_path else files

    def listed_again(self, file: FileEntry) -> FileEntry:
        """This file with its present size and times. Raises FileNotFoundError if it is not there any more."""
        seen = os.stat(file.path)
        if file.inode not in (0, seen.st_ino):
            raise FileNotFoundError(f"{file.path!r} is another file now")
        return file._replace(size=seen.st_size, changed_ns=seen.st_ctime_ns, modified_ns=seen.st_mtime_ns)

    def folder(self, hint: str) -> tuple[str, str | None, int]:
        """Returns (path, identity, ns of the last change) of the directory where ``hint`` was first seen.

        The identity is None if there is no such directory: it was renamed, removed or unmounted.
        """
        self._find_root()
        path = os.path.dirname(os.path.join(self.root, hint))
        name = os.path.basename(self._full)
        if not (self.globbed or self.root == self._full or name in (family(hint), os.path.basename(hint))):
            return self._full, None, 0  # files were seen in what is no directory now
        try:
            seen = os.stat(path)
            born = birth_mark(birth_time_ns(path, seen.st_ino))
        except OSError:
            return path, None, 0
        return path, f"{seen.st_ino:x}-{born or 0:x}" if stat.S_ISDIR(seen.st_mode) else None, seen.st_mtime_ns

    def removed(self, hint: str) -> str | None:
        """Returns the topmost missing directory above ``hint``, relative to the root, if its parent is there and has
        other directories. None if ``hint`` was in the root, or if all directories of a level are missing.
        """
        self._find_root()
        folder = os.path.dirname(hint)
        if not folder or not (self.globbed or self.root == self._full):
            return None
        while not os.path.isdir(os.path.join(self.root, above := os.path.dirname(folder))):
            if not above:
                return None
            folder = above
        try:
            with os.scandir(os.path.join(self.root, above)) as entries:
                return folder if any(entry.is_dir() and entry.name[0] != "." for entry in entries) else None
        except OSError:
            return None

    def born_ns(self, file: FileEntry) -> int | None:
        """When the file was created, in ns since 1970; None where its file system does not know.

        Raises FileNotFoundError if its path now leads nowhere or to another file.
        """
        return birth_time_ns(file.path, file.inode)

    def _walk(
        self, folder: str, name: str, step: int, above: set[tuple[int, int]]
    ) -> Iterator[tuple[str, list[os.DirEntry[str]]]]:
        """Yields, for each directory under ``folder`` whose entries the last step may match: the beginning of their
        names, and all entries. Their ``stat`` works until the next one is asked for. ``above``: directories that lead
        here.
        """
        steps = [step]
        while self._steps[steps[-1]] is None:
            steps.append(steps[-1] + 1)  # ** matches no directory, too
        last = len(self._steps) - 1
        prefix = f"{name}/" if name else ""
        below: dict[tuple[str, int], tuple[int, int]] = {}
        with contextlib.ExitStack() as closing:
            try:
                # By descriptor: a stat then does not walk the whole path again.
                fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                closing.callback(os.close, fd)
                with os.scandir(fd) as scanned:
                    entries = list(scanned)
            except OSError as error:
                if isinstance(error, (FileNotFoundError, NotADirectoryError)) and (self.globbed or folder != self.root):
                    return
                raise WorldError(
                    f"a directory that FilesSpout follows cannot be listed: {error}", code="PYSTORM_FILE_UNREADABLE"
                ) from error
            if steps[-1] == last:
                yield prefix, entries
            for at in steps:
                if at < last:
                    for entry, key in _folders(entries, self._steps[at]):
                        below[entry.name, at + (self._steps[at] is not None)] = key
        for (child, at), key in below.items():
            if key not in above:
                yield from self._walk(os.path.join(folder, child), prefix + child, at, above | {key})


def _folders(
    entries: list[os.DirEntry[str]], step: re.Pattern[str] | None
) -> Iterator[tuple[os.DirEntry[str], tuple[int, int]]]:
    """Yields the directories among them that a step matches, with device and inode. None: ``**``."""
    for entry in entries:
        try:
            if entry.is_file(follow_symlinks=False):
                continue
            if entry.name[0] in "._" if step is None else not step.fullmatch(entry.name):
                continue
            if entry.is_dir():
                seen = entry.stat()
                yield entry, (seen.st_dev, seen.st_ino)
        except OSError:
            continue


def _stat(entry: os.DirEntry[str]) -> tuple[int, int, int, int, int] | None:
    """(device, inode, size, changed, modified) of a regular file, links followed; None for anything else."""
    try:
        seen = entry.stat()
        changed = seen.st_ctime_ns
        if entry.is_symlink():
            changed = max(changed, entry.stat(follow_symlinks=False).st_ctime_ns)
    except OSError:
        return None
    if not stat.S_ISREG(seen.st_mode):
        return None
    return seen.st_dev, seen.st_ino, seen.st_size, changed, seen.st_mtime_ns
