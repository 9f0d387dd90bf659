"""The folder of one journal: immutable objects anywhere, files that grow where there is a file system of the machine.

``LocalStore`` has hard links, so a name can be taken exactly once. An object store has neither append nor rename nor
(through pyarrow) a put that fails where something is: there ``create`` answers None, and who is first is settled by
ballots (``journal_ballot``). Names are plain file names; whatever cannot be read or written is a WorldError.
"""

import errno
import os
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Protocol

from pyarrow.fs import FileSelector, FileSystem, FileType

from pystorm_source.errors import WorldError
from pystorm_source.redaction import without_credentials
from pystorm_source.spouts.journal_options import file_system

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EOPNOTSUPP)
"""What a mount answers that has no hard links."""


class Appender(Protocol):
    """A file that is being written. Bytes count once ``flush`` has returned, on an object store once ``close`` has."""

    def write(self, data: Any) -> None: ...

    def flush(self) -> None: ...

    def close(self, sync: bool) -> None: ...


class JournalStore(Protocol):
    """What a journal does with its folder. Raises WorldError naming the file."""

    folder: str

    def names(self) -> list[str]:
        """What lies in the folder, sorted; nothing where there is none."""
        ...

    def read(self, name: str) -> bytes | None:
        """The content; None where there is no such file."""
        ...

    def replace(self, name: str, data: bytes) -> None:
        """Puts a whole file there, in the place of what was. A reader sees the one or the other."""
        ...

    def create(self, name: str, data: bytes, after: Sequence[str] = ()) -> bool | None:
        """Puts a whole file there if there is none: whether it was this call. None where the store cannot promise
        that. ``after``: files that are on disk before it is there."""
        ...

    def append(self, name: str) -> Appender:
        """A new file that grows."""
        ...

    def delete(self, name: str) -> None:
        """Removes a file; nothing happens where there is none."""
        ...


def journal_store(path: str, *below: str, durable: bool = True) -> JournalStore:
    """The store of a folder below ``path``, a path or URI. ``durable``: whole files are forced to disk.

    Raises OptionError where the URI is none.
    """
    remote, inner = file_system(path)
    if remote is None:
        return LocalStore(Path(inner, *below), durable)
    shown = "/".join([without_credentials(path).rstrip("/"), *below])
    return ObjectStore(remote, "/".join([inner.rstrip("/"), *below]), shown)


class LocalStore:
    """A folder of this machine's, or one that is mounted."""

    def __init__(self, folder: Path, durable: bool = True):
        self.folder = str(folder)
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
            # The disk is waited for once: it takes all that is on its way at the same time.
            with ThreadPoolExecutor(1) if after else nullcontext() as beside:
                others = beside.submit(self._sync, after) if beside is not None else None
                whole = self._written(name, data)
                if others is not None:
                    others.result()
            try:
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
            os.makedirs(self._path, exist_ok=True)
            return _LocalAppender(self.folder, name)

    def delete(self, name: str) -> None:
        with _world(self.folder, name), suppress(FileNotFoundError):
            os.unlink(self._path / name)

    def _written(self, name: str, data: bytes) -> Path:
        """A file beside ``name`` that holds the data; its name keeps the beginning, by which it is trimmed."""
        os.makedirs(self._path, exist_ok=True)
        aside = self._path / f"{name}.{uuid.uuid4().hex}.tmp"
        with aside.open("xb") as file:
            file.write(data)
            file.flush()
            if self._durable:
                os.fsync(file.fileno())
        return aside

    def _sync(self, names: Sequence[str]) -> None:
        for name in names:
            with _world(self.folder, name), (self._path / name).open("rb") as file:
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
    def __init__(self, folder: str, name: str):
        self._folder, self._name = folder, name
        self._file = os.open(Path(folder, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)

    def write(self, data: Any) -> None:
        with _world(self._folder, self._name):
            rest = memoryview(data).cast("B")
            while rest:  # a part may be taken
                rest = rest[os.write(self._file, rest) :]

    def flush(self) -> None:
        """Unbuffered: what is written outlives this process."""

    def close(self, sync: bool) -> None:
        with _world(self._folder, self._name):
            if sync:
                os.fsync(self._file)
            os.close(self._file)


class ObjectStore:
    """A folder of any ``pyarrow.fs.FileSystem`` whose objects appear whole, when they are closed."""

    def __init__(self, remote: FileSystem, path: str, shown: str):
        self.folder = shown
        self._remote = remote
        self._path = path

    def names(self) -> list[str]:
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

    def _make_folder(self) -> None:
        # Where folders are names only (S3), this would put a marker object there: a first write makes them as well.
        if self._remote.type_name not in ("s3", "gcs"):
            self._remote.create_dir(self._path, recursive=True)


class _ObjectAppender:
    def __init__(self, folder: str, name: str, stream: Any):
        self._folder, self._name = folder, name
        self._stream = stream

    def write(self, data: Any) -> None:
        with _world(self._folder, self._name):
            self._stream.write(data)

    def flush(self) -> None:
        """Nobody sees an object before it is closed."""

    def close(self, sync: bool) -> None:
        with _world(self._folder, self._name):
            self._stream.close()


@contextmanager
def _world(folder: str, name: str = "") -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise WorldError(
            f"the journal cannot be read or written ({type(error).__name__}: {error.strerror or error}): option "
            "'journal.path' names a place that the driver and every executor may read, write, list and delete in. "
            f"Given: {'/'.join(part for part in (folder, name) if part)!r}"
        ) from error
