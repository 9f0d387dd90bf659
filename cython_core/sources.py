"""The core's sources, a digest of them to tell a stale compiled core from a fresh one, and one of its declarations."""

import hashlib
from pathlib import Path


def sources(directory: str | Path) -> list[Path]:
    """Every ``.pyx``, ``.pxi``, ``.pxd`` and C header under ``directory``, sorted."""
    return sorted(path for path in Path(directory).rglob("*") if path.suffix in {".pyx", ".pxi", ".pxd", ".h"})


def digest(directory: str | Path) -> str:
    """Digest of the sources under ``directory`` (16 hex digits).

    Empty without a ``.pyx``, as in an installed wheel: nothing can be stale there.
    """
    root = Path(directory)
    found = sources(root)
    if not any(path.suffix == ".pyx" for path in found):
        return ""
    return _digest(found, root)


def abi(directory: str | Path) -> str:
    """Digest of the declarations under ``directory`` (16 hex digits): every ``.pxd`` and C header.

    Other modules are compiled against them; an installed wheel contains them, too.
    """
    root = Path(directory)
    return _digest([path for path in sources(root) if path.suffix in {".pxd", ".h"}], root)


def _digest(paths: list[Path], root: Path) -> str:
    collected = hashlib.sha256()
    for path in paths:
        collected.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return collected.hexdigest()[:16]
