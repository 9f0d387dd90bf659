"""Looks into the wheel and the sdist of folder `sys.argv[1]`: whether what must be there is, and nothing else.

Prints the size of the wheel, which every executor gets.
"""

import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MAX_WHEEL_BYTES = 3_000_000  # a wheel with debug symbols is about three times that


def main(folder: Path) -> list[str]:
    """Everything that is wrong."""
    (wheel,) = folder.glob("*.whl")
    (sdist,) = folder.glob("*.tar.gz")
    in_wheel = set(zipfile.ZipFile(wheel).namelist())
    with tarfile.open(sdist) as archive:
        in_sdist = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    size = wheel.stat().st_size
    print(f"{wheel.name}: {size:,} bytes")
    wrong = [f"wheel: {size:,} bytes, more than {MAX_WHEEL_BYTES:,}"] if size > MAX_WHEEL_BYTES else []
    wrong += [f"wheel: without {what}" for what in ("LICENSE",) if not any(n.endswith(f"/{what}") for n in in_wheel)]
    modules = sorted(str(path.relative_to(ROOT).with_suffix("")) for path in ROOT.glob("cython_core/**/*.pyx"))
    compiled = {name.split(".")[0] for name in in_wheel if name.endswith((".so", ".pyd"))}
    wrong += [f"wheel: {module} is not compiled in it" for module in modules if module not in compiled]
    wrong += [f"wheel: {module} has no source any more" for module in compiled - set(modules)]
    packages = [*ROOT.glob("pystorm_source/**/*.py"), *ROOT.glob("cython_core/**/*.py")]
    python = [path.relative_to(ROOT).as_posix() for path in packages]
    templates = [path.relative_to(ROOT).as_posix() for path in ROOT.glob("pystorm_source/**/*.in")]
    presets = [path.relative_to(ROOT).as_posix() for path in ROOT.glob("pystorm_source/conf/*.yaml")]
    observe = ["pystorm_source/observe/alerts.yaml", "pystorm_source/observe/grafana.json"]
    page = ROOT / "pystorm_source/observe/page"
    kinds = {".js", ".css", ".in", ".txt"}
    observe += [path.relative_to(ROOT).as_posix() for path in page.rglob("*") if path.suffix in kinds]
    shipped = [*python, *templates, *presets, *observe, "pystorm_source/cli/prose.txt"]
    wrong += [f"wheel: without {name}" for name in [*shipped, "pyspark_pystorm.py"] if name not in in_wheel]
    headers = [path.relative_to(ROOT).as_posix() for path in ROOT.glob("cython_core/**/*.[hp]*") if path.is_file()]
    sources = [name for name in headers if name.endswith((".h", ".pyx", ".pxd", ".pyi"))]
    to_compile_against = [name for name in sources if not name.endswith(".pyx")]
    wrong += [f"wheel: without {name}" for name in to_compile_against if name not in in_wheel]
    script = "pystorm-python"
    if not any(name.endswith(f".data/scripts/{script}") for name in in_wheel):
        wrong.append(f"wheel: without the script {script}")
    wrong += [
        f"sdist: without {name}"
        for name in [*shipped, f"pystorm_source/source/{script}", *sources, "setup.py", "LICENSE"]
        if name not in in_sdist
    ]
    wrong += [
        f"wheel: {name} does not belong in it"
        for name in in_wheel
        if name.startswith(("tests/", "testbed/", "benchmarks/"))
    ]
    wrong += [f"wheel: {name} does not belong in it" for name in in_wheel if name.endswith((".c", ".pyx", ".html"))]
    wrong += [f"sdist: {name} does not belong in it" for name in in_sdist if name.endswith((".so", ".c", ".html"))]
    return wrong


if __name__ == "__main__":
    found = main(Path(sys.argv[1]))
    print("\n".join(found))
    sys.exit(1 if found else 0)
