"""Cythonizes the core into another folder and scores its lines, all of them, as Cython's annotate HTML does.

    python tests/gates/annotate.py FOLDER      copies the core there, prints Cython's own output, writes FOLDER/*.html

Cython writes HTML for each `.pyx` only, but a module has the code of the `.pxi` files that it includes, and of inline
functions of every `.pxd` that it uses. So a second HTML is written per module and such a file: `module.file.pxd.html`.
"""

import os
import re
import runpy
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
_LINE = re.compile(r'<pre class="cython line score-(\d+)"[^>]*>(.)<span class="[^"]*">\s*(\d+)</span>')


class Score(NamedTuple):
    """How much of Python one source line costs in one module, if it was compiled into code at all."""

    module: str
    line: int
    score: int
    has_code: bool


def scores(html: Path) -> list[Score]:
    """The score of every line of one HTML file."""
    found = _LINE.findall(html.read_text().replace("&#xA0;", " "))
    return [Score(html.stem.split(".")[0], int(line), int(score), mark == "+") for score, mark, line in found]


def annotate(folder: Path) -> None:
    """Copies what a build needs into `folder`, cythonizes it there (no C compiled), moves the HTML up to it."""
    for name in ("cython_core", "pystorm_source/version.py", "setup.py", "pyproject.toml", "pyspark_pystorm.py"):
        source, target = ROOT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.so", "*.c", "*.html", "__pycache__"))
        else:
            shutil.copy(source, target)
    _also_annotate_parts()
    os.chdir(folder)
    sys.argv = ["setup.py", "--quiet", "annotate"]
    runpy.run_path("setup.py", run_name="__main__")
    for html in (folder / "build").rglob("*.html"):
        html.replace(folder / html.name)


def _also_annotate_parts() -> None:
    from Cython.Compiler.Annotate import AnnotationCCodeWriter

    original = AnnotationCCodeWriter.save_annotation

    def save_annotation(self, source_filename, target_filename, coverage_xml=None):
        original(self, source_filename, target_filename, coverage_xml)
        for name in list(self.code):
            if name and name.endswith((".pxi", ".pxd")) and "cython_core" in Path(name).parts:
                target = Path(target_filename)
                original(self, name, str(target.with_name(f"{target.stem}.{Path(name).name}.c")), coverage_xml)

    AnnotationCCodeWriter.save_annotation = save_annotation


if __name__ == "__main__":
    annotate(Path(sys.argv[1]).resolve())
