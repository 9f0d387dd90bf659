"""A digest of the core's sources, to tell a stale compiled core from a fresh one."""

import hashlib
from pathlib import Path


def digest(directory: str | Path) -> str:
    """Digest of every ``.pyx``, ``.pxd`` and C header under ``directory`` (16 hex digits).

    Empty where there is no ``.pyx``: an installed wheel holds none, so there is nothing to be stale against.
    """
    root = Path(directory)
    if not any(root.glob("*.pyx")):
        return ""
    collected = hashlib.sha256()
    for path in sorted([*root.glob("*.pyx"), *root.glob("*.pxd"), *root.glob("include/*.h")]):
        collected.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return collected.hexdigest()[:16]
