"""Builds the sdist so that the same sources give the same bytes: ``python .ci/sdist.py FOLDER``.

setuptools puts the time of the build, times of files, the user's name and the folder's order into the archive. This
packs its files again without them: sorted, owned by nobody, with the time SOURCE_DATE_EPOCH (by default the time of the
last commit). It builds a copy of the files that git knows or would take, without what was built in the checkout.
"""

import gzip
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEVEL = 9  # of gzip: any level will do, but always the same one
UNKNOWN = 315532800  # 1980, the first year that a zip can name: outside of git, without SOURCE_DATE_EPOCH


def epoch() -> int:
    """The time that every file of the archive gets, in seconds. Raises ValueError for a bad SOURCE_DATE_EPOCH."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    asked = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True)
    return int(asked.stdout) if asked.returncode == 0 else UNKNOWN


def repack(archive: Path, time: int) -> bytes:
    """The same files as ``archive``, in bytes that depend on their names, contents and modes alone."""
    packed = io.BytesIO()
    with tarfile.open(archive) as old, tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new:
        for member in sorted(old.getmembers(), key=lambda each: each.name):
            same = tarfile.TarInfo(member.name)
            same.type, same.size, same.mtime = member.type, member.size, time
            same.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            new.addfile(same, old.extractfile(member) if member.isfile() else None)
    return gzip.compress(packed.getvalue(), LEVEL, mtime=0)


def build(folder: Path) -> Path:
    """The sdist, in ``folder``. Blocking: setuptools builds it. Raises CalledProcessError if that fails."""
    with tempfile.TemporaryDirectory() as temporary:
        sources, made = Path(temporary, "sources"), Path(temporary, "made")
        subprocess.run([ROOT / ".ci/gates/copy-sources", sources], cwd=ROOT, check=True)
        command = [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", made, sources]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        (archive,) = made.glob("*.tar.gz")
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / archive.name
        target.write_bytes(repack(archive, epoch()))
    return target


if __name__ == "__main__":
    print(build(Path(sys.argv[1])))
