"""Looks into the wheels and the sdist of folder `sys.argv[1]`: whether what must be there is, and nothing else.

Prints the size of each wheel, which every executor gets.
"""

import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MAX_WHEEL_BYTES = 3_000_000  # a wheel with debug symbols is about three times that
SCRIPT = "pystorm-python"
OURS_ALONE = ("tests/", "testbed/", "benchmarks/", "examples/", "docs/")
LICENCES = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["license-files"]


def main(folder: Path) -> list[str]:
    """Everything that is wrong with the wheels and the sdist in ``folder``."""
    wheels, sdists = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    wrong = [] if wheels else [f"no wheel in {folder}"]
    wrong += [] if len(sdists) == 1 else [f"{len(sdists)} sdists in {folder}, not 1"]
    for wheel in wheels:
        wrong += [f"{wheel.name}: {fault}" for fault in faults_of_wheel(wheel)]
    for sdist in sdists:
        wrong += [f"{sdist.name}: {fault}" for fault in faults_of_sdist(sdist)]
    return wrong


def faults_of_wheel(wheel: Path) -> list[str]:
    """What is missing in it, what does not belong there, and its size if that is too large."""
    inside = set(zipfile.ZipFile(wheel).namelist())
    size = wheel.stat().st_size
    print(f"{wheel.name}: {size:,} bytes")
    wrong = [f"{size:,} bytes, more than {MAX_WHEEL_BYTES:,}"] if size > MAX_WHEEL_BYTES else []
    licences = [name.partition(".dist-info/licenses/")[2] for name in inside]
    wrong += [f"without the licence {name}" for name in LICENCES if name not in licences]
    modules = paths("cython_core/**/*.pyx", suffix="")
    compiled = {name.split(".")[0] for name in inside if name.endswith((".so", ".pyd"))}
    wrong += [f"{module} is not compiled in it" for module in modules if module not in compiled]
    wrong += [f"{module} has no source any more" for module in compiled - set(modules)]
    wrong += [f"without {name}" for name in [*shipped(), *headers(), "pyspark_pystorm.py"] if name not in inside]
    if not any(name.endswith(f".data/scripts/{SCRIPT}") for name in inside):
        wrong.append(f"without the script {SCRIPT}")
    strange = [name for name in inside if name.startswith(OURS_ALONE) or name.endswith((".c", ".pyx", ".pxi", ".html"))]
    return wrong + [f"{name} does not belong in it" for name in strange]


def faults_of_sdist(sdist: Path) -> list[str]:
    """What is missing in it, and what does not belong there."""
    with tarfile.open(sdist) as archive:
        inside = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    needed = [*shipped(), f"pystorm_source/spark/{SCRIPT}", *headers(), *LICENCES]
    needed += [*paths("cython_core/**/*.pyx"), *paths("cython_core/**/*.pxi")]
    wrong = [f"without {name}" for name in [*needed, "setup.py", "pyproject.toml"] if name not in inside]
    return wrong + [f"{name} does not belong in it" for name in inside if name.endswith((".so", ".c", ".html"))]


def paths(pattern: str, suffix: str | None = None) -> list[str]:
    """The files of the checkout, as both archives name them; with another ``suffix``."""
    found = (path.relative_to(ROOT) for path in ROOT.glob(pattern) if path.is_file())
    return sorted((path if suffix is None else path.with_suffix(suffix)).as_posix() for path in found)


def shipped() -> list[str]:
    """What both archives have beside the core's sources: modules, templates, presets, the page."""
    patterns = ["pystorm_source/**/*.py", "cython_core/**/*.py", "*/py.typed"]
    patterns += ["pystorm_source/**/*.in", "pystorm_source/conf/*.yaml"]
    patterns += [f"pystorm_source/observe/page/**/*{kind}" for kind in (".js", ".css", ".in", ".txt")]
    patterns += ["pystorm_source/conf/metrics/alerts.yaml", "pystorm_source/conf/metrics/grafana.json"]
    return sorted({name for pattern in [*patterns, "pystorm_source/cli/show/prose.txt"] for name in paths(pattern)})


def headers() -> list[str]:
    """What a compiled component is compiled against."""
    return [name for kind in (".h", ".pxd", ".pyi") for name in paths(f"cython_core/**/*{kind}")]


if __name__ == "__main__":
    found = main(Path(sys.argv[1]))
    print("\n".join(found))
    sys.exit(1 if found else 0)
