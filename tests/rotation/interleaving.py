"""Between any two calls of the reader into the file system something else may happen; here a seed says what.

The modules that look at followed files see the file system through a stand-in for ``os``, which calls back before each
look. A directory is listed in two halves, as a large one is: what is renamed in between is seen twice, or not at all.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from pystorm_source.spouts.files.identity import catalog, gzip_members, head, text

_HOOKED = ("stat", "open", "pread", "fstat")


class Entry:
    """What ``os.scandir`` gives. ``folder``: a path or a descriptor."""

    def __init__(self, folder: str | int, name: str, before: Callable[[], None]):
        self.name = name
        self.path, self._at = (name, folder) if isinstance(folder, int) else (os.path.join(folder, name), None)
        self._before = before
        self._seen = self._stat(False)

    def inode(self) -> int:
        return self._seen.st_ino

    def is_dir(self) -> bool:
        try:
            return stat.S_ISDIR(self._stat(True).st_mode)
        except FileNotFoundError:
            return False

    def is_file(self, follow_symlinks: bool = True) -> bool:
        assert not follow_symlinks
        return stat.S_ISREG(self._seen.st_mode)

    def is_symlink(self) -> bool:
        return stat.S_ISLNK(self._seen.st_mode)

    def stat(self, follow_symlinks: bool = True) -> os.stat_result:
        self._before()
        return self._stat(follow_symlinks)

    def _stat(self, follow_symlinks: bool) -> os.stat_result:
        return os.stat(self.path, dir_fd=self._at, follow_symlinks=follow_symlinks)


class Listing:
    def __init__(self, folder: str | int, before: Callable[[], None]):
        self._folder = folder
        self._before = before
        before()
        self._names = sorted(os.listdir(folder))

    def __iter__(self) -> Iterator[Entry]:
        middle = self._names[len(self._names) // 2] if self._names else ""
        yield from self._entries(name for name in self._names if name < middle)
        self._before()
        yield from self._entries(name for name in sorted(os.listdir(self._folder)) if name >= middle)

    def _entries(self, names: Iterator[str]) -> Iterator[Entry]:
        for name in names:
            try:
                yield Entry(self._folder, name, self._before)
            except FileNotFoundError:
                continue

    def __enter__(self) -> "Listing":
        return self

    def __exit__(self, *_: object) -> None:
        pass


@contextmanager
def interleaved(before: Callable[[], None]) -> Iterator[None]:
    """Calls ``before`` before each look at the file system."""

    def hooked(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            before()
            return function(*args, **kwargs)

        return call

    stand_in = SimpleNamespace(**{name: getattr(os, name) for name in dir(os) if not name.startswith("__")})
    for name in _HOOKED:
        setattr(stand_in, name, hooked(getattr(os, name)))
    stand_in.scandir = lambda folder: Listing(folder, before)
    modules = (catalog, head, text, gzip_members)
    birth_time = catalog.birth_time_ns
    for module in modules:
        module.os = stand_in  # type: ignore[attr-defined]
    catalog.birth_time_ns = hooked(birth_time)
    try:
        yield
    finally:
        for module in modules:
            module.os = os  # type: ignore[attr-defined]
        catalog.birth_time_ns = birth_time
