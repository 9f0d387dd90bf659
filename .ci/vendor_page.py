"""Takes the libraries of the page over from npm: ``python .ci/vendor_page.py``. After a change of a version here.

It writes the files, their licences, and their digests, ``requirements/page.sha256``, which a test compares.
``npm pack`` checks the digest that the registry has of a package.
"""

import hashlib
import subprocess
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENDORED = ROOT / "pystorm_source/observe/page/vendor"
DIGESTS = ROOT / "requirements/page.sha256"
PACKAGES = {  # package, version → its files, and for whom its licence speaks
    ("uplot", "1.6.32"): (["dist/uPlot.iife.min.js", "dist/uPlot.min.css"], "uPlot"),
    ("@dagrejs/dagre", "3.1.3"): (["dist/dagre.min.js"], "dagre, and @dagrejs/graphlib, which is in its file"),
}


def main() -> None:
    """Writes them all."""
    licences = []
    VENDORED.mkdir(exist_ok=True)
    for (package, version), (files, owner) in PACKAGES.items():
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["npm", "pack", "--silent", f"{package}@{version}"], cwd=folder, check=True)
            (archive,) = Path(folder).glob("*.tgz")
            with tarfile.open(archive) as inside:
                for name in files:
                    (VENDORED / Path(name).name).write_bytes(_read(inside, name))
                names = ", ".join(Path(name).name for name in files)
                text = _read(inside, "LICENSE").decode().strip()
                licences.append(f"{names}: {package} {version}\n\n{owner}:\n\n{text}\n")
    (VENDORED / "LICENSES.txt").write_text("\n\n".join(licences))
    digests = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in sorted(VENDORED.iterdir())]
    DIGESTS.write_text("# Written by .ci/vendor_page.py.\n" + "\n".join(digests) + "\n")


def _read(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(f"package/{name}")
    assert file is not None, name
    return file.read()


if __name__ == "__main__":
    main()
