"""The folder of one journal: immutable objects anywhere, growing files on the machine's file systems.

``LocalStore`` has hard links, so a name can be taken exactly once. An object store has neither append nor rename nor
(through pyarrow) a put that fails for an existing object: there ``create`` returns None, and attempts agree on a winner
by ballots (``ballot``). Names are plain file names; a failed read or write is a WorldError.

The writer of a file in a ``LocalStore`` locks it (``flock``). The system releases the lock when the process dies, even
by SIGKILL, so another process can distinguish a dead writer from a slow one (``is_dead``). This needs a file system
whose locks work between machines: local disks do, and so does NFS unless it is mounted with ``nolock`` or
``local_lock``. Without locks, no writer is ever taken for dead.
"""

import errno
import fcntl
import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from pystorm_source.errors import WorldError
from pystorm_source.errors.redaction import without_credentials
from pystorm_source.journal.options import file_system
from pystorm_source.journal.private_files import NEW, OWN, FileGroup, group_remedy

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem  # as in ``file_system``

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EOPNOTSUPP)
"""Errors of a mount without hard links."""

Release: TypeAlias = Callable[[], None]


class Appender(Protocol):
    """A file that is being written. Bytes count once ``flush`` has returned, in an object store once ``close`` has."""

    def lease(self) -> Release:
        """The writer counts as alive, even after ``close``, until the returned function is called."""
        ...

    def write(self, data: Any) -> None: ...

    def flush(self) -> None: ...

    def close(self, sync: bool) -> None: ...


class JournalStore(Protocol):
    """A journal's access to its folder. Raises WorldError naming the file."""

    folder: str

    def names(self) -> list[str]:
        """The names in the folder, sorted; empty without a folder."""
        ...

    def read(self, name: str) -> bytes | None:
        """The content; None if the file does not exist."""
        ...

    def replace(self, name: str, data: bytes) -> None:
        """Writes a complete file, which replaces an old one. A reader sees the old or the new one."""
        ...

    def create(self, name: str, data: bytes, after: Sequence[str] = ()) -> bool | None:
        """Writes a complete file if none has this name; returns whether this call wrote it. None if the store cannot
        promise that. ``after``: files that must exist, and be on disk if the store is durable, before this one does."""
        ...

    def append(self, name: str) -> Appender:
        """Creates a file that grows."""
        ...

    def delete(self, name: str) -> None:
        """Removes a file, if it exists."""
        ...

    def extend(self, name: str, data: bytes) -> None:
        """Adds bytes to the end of a closed file; an object store does nothing."""
        ...

    def shorten(self, name: str, length: int) -> None:
        """Keeps the first ``length`` bytes of a file; deletes it if ``length`` is 0. An object store can only
        delete."""
        ...

    def is_dead(self, name: str) -> AbstractContextManager[bool]:
        """Whether the process that wrote a file has died, or has given up its lease; False if that is unknown. During
        the context, no other process gets True."""
        ...


def journal_store(path: str, *below: str, durable: bool = True, group: FileGroup = OWN) -> JournalStore:
    """The store of a folder below ``path``, a path or URI. ``durable``: complete files are forced to disk. ``group``:
    may read and write local files, besides this user.

    Raises OptionError if the URI is invalid.
    """
    remote, inner = file_system(path)
    if remote is None:
        return LocalStore(Path(inner, *below), durable, group)
    shown = "/".join([without_credentials(path).rstrip("/"), *below])
    return ObjectStore(remote, "/".join([inner.rstrip("/"), *below]), shown)


class LocalStore:
    """A local or mounted folder."""

    def __init__(self, folder: Path, durable: bool = True, group: FileGroup = OWN):
        self.folder = str(folder)
        self._group = group
        self._path = folder
        self._durable = durable

    def names(self) -> list[str]:
        with _world(self.folder), suppress(FileNotFoundError):
            return sorted(os.listdir(self._path))
        return []

    def read(self, name: str) -> bytes | None:
        with _world(self.folder, name), suppress(FileNotFoundError):
            return (self._path / name).read_bytes()
        return None

    def replace(self, name: str, data: bytes) -> None:
        with _world(self.folder, name):
            os.replace(self._written(name, data), self._path / name)
            self._sync_folder()

    def create(self, name: str, data: bytes, after: Sequence[str] = ()) -> bool | None:
        with _world(self.folder, name):
            # Waits for the disk once: it writes everything at the same time.
            with ThreadPoolExecutor(1) if after and self._durable else nullcontext() as beside:
                others = beside.submit(self._sync, after) if beside is not None else None
                whole = self._written(name, data)
            try:
                self._sync(after) if others is None else others.result()
                os.link(whole, self._path / name)
            except FileExistsError:
                return False
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                return None
            finally:
                os.unlink(whole)
            self._sync_folder()
        return True

    def append(self, name: str) -> Appender:
        with _world(self.folder, name):
            self._group.make_folder(self._path)
            return _LocalAppender(self.folder, name, self._group)

    def delete(self, name: str) -> None:
        with _world(self.folder, name), suppress(FileNotFoundError):
            os.unlink(self._path / name)

    def extend(self, name: str, data: bytes) -> None:
        with _world(self.folder, name):
            file = os.open(self._path / name, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            try:
                _write(file, data)
            finally:
                os.close(file)

    def shorten(self, name: str, length: int) -> None:
        if not length:
            self.delete(name)
            return
        with _world(self.folder, name), suppress(FileNotFoundError):
            os.truncate(self._path / name, length)

    @contextmanager
    def is_dead(self, name: str) -> Iterator[bool]:
        try:
            file = os.open(self._path / name, os.O_RDWR | os.O_CLOEXEC)  # NFS locks no other
        except OSError:
            yield False
            return
        try:
            yield _locked(file)
        finally:
            os.close(file)

    def _written(self, name: str, data: bytes) -> Path:
        """Writes the data to a file beside ``name``. Its name begins with ``name``, so that trimming finds it."""
        self._group.make_folder(self._path)
        aside = self._path / f"{name}.{uuid.uuid4().hex}.tmp"
        try:
            with open(self._group.open(aside), "wb") as file:
                file.write(data)
                file.flush()
                if self._durable:
                    os.fsync(file.fileno())
        except BaseException:
            aside.unlink(missing_ok=True)  # on a full disk
            raise
        return aside

    def _sync(self, names: Sequence[str]) -> None:
        """Raises WorldError for missing files, even if the store is not durable."""
        for name in names:
            with _world(self.folder, name), (self._path / name).open("rb") as file:
                if self._durable:
                    os.fsync(file.fileno())

    def _sync_folder(self) -> None:
        if not self._durable:
            return
        folder = os.open(self._path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


class _LocalAppender:
    def __init__(self, folder: str, name: str, group: FileGroup):
        self._folder, self._name = folder, name
        while True:
            self._file = group.open(Path(folder, name), NEW | os.O_APPEND)
            with suppress(OSError):  # no locks here
                fcntl.flock(self._file, fcntl.LOCK_EX)
            if os.fstat(self._file).st_nlink:
                return
            os.close(self._file)  # before the lock, it was taken for a dead process's file and deleted

    def lease(self) -> Release:
        file = os.dup(self._file)  # one lock belongs to both
        return lambda: os.close(file)

    def write(self, data: Any) -> None:
        with _world(self._folder, self._name):
            _write(self._file, data)

    def flush(self) -> None:
        """Not needed: unbuffered bytes outlive this process."""

    def close(self, sync: bool) -> None:
        with _world(self._folder, self._name):
            try:
                if sync:
                    os.fsync(self._file)
            finally:
                os.close(self._file)


def _write(file: int, data: Any) -> None:
    rest = memoryview(data).cast("B")
    while rest:  # os.write may take only a part
        rest = rest[os.write(file, rest) :]


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


class ObjectStore:
    """A folder of any ``pyarrow.fs.FileSystem`` whose objects appear complete, when they are closed."""

    def __init__(self, remote: "FileSystem", path: str, shown: str):
        self.folder = shown
        self._remote = remote
        self._path = path

    def names(self) -> list[str]:
        from pyarrow.fs import FileSelector, FileType

        with _world(self.folder):
            found = self._remote.get_file_info(FileSelector(self._path, allow_not_found=True))
            return sorted(info.base_name for info in found if info.type == FileType.File)

    def read(self, name: str) -> bytes | None:
        path = f"{self._path}/{name}"
        with _world(self.folder, name), suppress(FileNotFoundError):
            stream = self._remote.open_input_stream(path, compression=None)
            with stream:
                return bytes(stream.read())
        return None

    def replace(self, name: str, data: bytes) -> None:
        with _world(self.folder, name):
            self._make_folder()
            with self._remote.open_output_stream(f"{self._path}/{name}", compression=None) as stream:
                stream.write(data)

    def create(self, name: str, data: bytes, after: Sequence[str] = ()) -> bool | None:
        return None

    def append(self, name: str) -> Appender:
        with _world(self.folder, name):
            self._make_folder()
            stream = self._remote.open_output_stream(f"{self._path}/{name}", compression=None)
            return _ObjectAppender(self.folder, name, stream)

    def delete(self, name: str) -> None:
        with _world(self.folder, name), suppress(FileNotFoundError):
            self._remote.delete_file(f"{self._path}/{name}")

    def extend(self, name: str, data: bytes) -> None:
        """Objects do not grow."""

    def shorten(self, name: str, length: int) -> None:
        if not length:
            self.delete(name)

    def is_dead(self, name: str) -> AbstractContextManager[bool]:
        return nullcontext(False)

    def _make_folder(self) -> None:
        # If folders are only names (S3), this would create a marker object: the first write makes them, too.
        if self._remote.type_name not in ("s3", "gcs"):
            self._remote.create_dir(self._path, recursive=True)


class _ObjectAppender:
    def __init__(self, folder: str, name: str, stream: Any):
        self._folder, self._name = folder, name
        self._stream = stream

    def lease(self) -> Release:
        return lambda: None

    def write(self, data: Any) -> None:
        with _world(self._folder, self._name):
            self._stream.write(data)

    def flush(self) -> None:
        """Does nothing: an object becomes visible when it is closed."""

    def close(self, sync: bool) -> None:
        with _world(self._folder, self._name):
            self._stream.close()


@contextmanager
def _world(folder: str, name: str = "") -> Iterator[None]:
    try:
        yield
    except OSError as error:
        other = group_remedy(Path(folder, name), "journal.group") if isinstance(error, PermissionError) else ""
        raise WorldError(
            f"the journal cannot be read or written ({type(error).__name__}: {error.strerror or error}): let the "
            "driver and every executor read, write, list and delete in 'journal.path'. "
            f"{other}Given: {'/'.join(part for part in (folder, name) if part)!r}",
            code="PYSTORM_JOURNAL_UNREACHABLE",
        ) from error
