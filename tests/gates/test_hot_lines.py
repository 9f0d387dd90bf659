"""Lines marked `# hot` are C alone: Cython's annotate HTML gives them the score 0. And Cython has no hint to give."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.gates.annotate import scores

pytestmark = [pytest.mark.gate, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "cython_core"
MARK = "# hot"


@pytest.fixture(scope="module")
def annotated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of the HTML files, and what Cython said."""
    folder = tmp_path_factory.mktemp("annotated")
    done = subprocess.run([sys.executable, ROOT / "tests/gates/annotate.py", folder], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder, done.stdout + done.stderr


def sources() -> list[Path]:
    return sorted(path for path in CORE.rglob("*") if path.suffix in {".pyx", ".pxi", ".pxd"})


def hot_lines(source: Path) -> dict[int, str]:
    """Line number → text of the marked lines."""
    lines = enumerate(source.read_text().splitlines(), 1)
    return {number: text.strip() for number, text in lines if text.rstrip().endswith(MARK)}


def test_hot_lines_are_c_alone(annotated):
    folder, _ = annotated
    wrong, unused = [], []
    for source in sources():
        hot = hot_lines(source)
        pages = (
            [folder / f"{source.stem}.html"]
            if source.suffix == ".pyx"
            else sorted(folder.glob(f"*.{source.name}.html"))
        )
        found = [score for page in pages for score in scores(page) if score.line in hot and score.has_code]
        wrong += [
            f"{source.name}:{score.line}: score {score.score} in {score.module}: {hot[score.line]}"
            for score in found
            if score.score
        ]
        compiled = {score.line for score in found}
        # A branch word alone (`else:`) has no code of its own; every other marked line must have some somewhere.
        unused += [
            f"{source.name}:{number}: {text}"
            for number, text in hot.items()
            if number not in compiled and not text.startswith(("else:", "#"))
        ]
    assert not wrong, "these lines are marked hot and call into Python:\n" + "\n".join(wrong)
    assert not unused, "these lines are marked hot and are compiled into nothing:\n" + "\n".join(unused)


def test_there_are_hot_lines():
    assert any(hot_lines(source) for source in sources())


def test_cython_has_no_performance_hint(annotated):
    _, said = annotated
    hints = [line for line in said.splitlines() if "performance hint" in line.lower()]
    assert not hints, "\n".join(hints)


def test_cython_has_no_warning(annotated):
    _, said = annotated
    warnings = [line for line in said.splitlines() if line.startswith("warning:")]
    assert not warnings, "\n".join(warnings)


def test_scores_are_read(tmp_path):
    page = tmp_path / "module.other.pxd.html"
    page.write_text(
        '<pre class="cython line score-0">&#xA0;<span class="">01</span>: x</pre>\n'
        '<pre class="cython line score-17" onclick="(function(){})">+<span class="">12</span>: y</pre>\n'
    )
    assert [tuple(score) for score in scores(page)] == [("module", 1, 0, False), ("module", 12, 17, True)]
