"""``make release-check`` finds each fault of a release, and the sdist is the same whenever and wherever it is built."""

import gzip
import io
import runpy
import tarfile
import zipfile
from pathlib import Path

import pytest

from pystorm_source.version import __version__

ROOT = Path(__file__).resolve().parents[2]
CHECK = runpy.run_path(str(ROOT / ".ci/release_check.py"))
CONTENTS = runpy.run_path(str(ROOT / ".ci/gates/wheel_contents.py"))
SDIST = runpy.run_path(str(ROOT / ".ci/sdist.py"))
DATED = f"# Changelog\n\n## [{__version__}] - 2027-01-31\n"


@pytest.mark.parametrize(
    ("tag", "changelog", "said"),
    [
        ("", DATED, ""),
        (f"v{__version__}", DATED, ""),
        ("", DATED.replace("2027-01-31", "Unreleased"), ""),
        (f"v{__version__}", DATED.replace("2027-01-31", "Unreleased"), "'Unreleased' for a date"),
        ("v99.0.0", DATED, "the tag is v99.0.0"),
        (__version__, DATED, f"the tag is {__version__}"),
        ("", DATED.replace(__version__, "99.0.0"), f"no heading '## [{__version__}]"),
    ],
)
def test_tag_version_and_changelog_name_one_release(tag, changelog, said):
    wrong = CHECK["faults_of_version"](tag, changelog)
    assert (said in wrong[0] and len(wrong) == 1) if said else not wrong


def metadata(**changed: str) -> str:
    """The metadata of an archive of this version; an empty value leaves its line out."""
    project = CHECK["PROJECT"]
    lines = {
        "Metadata-Version": "2.4",
        "Name": project["name"],
        "Version": __version__,
        "Summary": project["description"],
        "Requires-Python": project["requires-python"],
        "License-Expression": project["license"],
        "License-File": "\nLicense-File: ".join(project["license-files"]),
        "Description-Content-Type": "text/markdown",
    } | {name.replace("_", "-"): value for name, value in changed.items()}
    return "".join(f"{name}: {value}\n" for name, value in lines.items() if value)


def wheel(folder: Path, names: list[str], size: int = 0, text: str = "") -> Path:
    """A wheel with files of these names, and ``size`` bytes more."""
    path = folder / f"pystorm_source-{__version__}-cp311-cp311-linux_x86_64.whl"
    info = f"pystorm_source-{__version__}.dist-info"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr(f"{info}/METADATA", text or metadata() + "\n# Title\n")
        made.writestr("more", b"0" * size)
        for name in names:
            made.writestr(name, b"")
    return path


def complete() -> list[str]:
    """The names in a wheel that has everything."""
    modules = [f"{name}.cpython-311.so" for name in CONTENTS["paths"]("cython_core/**/*.pyx", suffix="")]
    licences = [f"pystorm_source-1.dist-info/licenses/{name}" for name in CONTENTS["LICENCES"]]
    whole = [*CONTENTS["shipped"](), *CONTENTS["headers"](), *modules, *licences]
    return [*whole, "pyspark_pystorm.py", "x.data/scripts/pystorm-python"]


def test_a_complete_wheel_has_no_fault(tmp_path):
    assert CONTENTS["faults_of_wheel"](wheel(tmp_path, complete())) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda names: [*names, "tests/test_it.py"], "tests/test_it.py does not belong in it"),
        (lambda names: [*names, "benchmarks/harness/measure.py"], "does not belong in it"),
        (lambda names: [*names, "cython_core/queues/queues.c"], "does not belong in it"),
        (lambda names: [*names, "cython_core/gone.so"], "cython_core/gone has no source any more"),
        (lambda names: [name for name in names if not name.endswith("LICENSES.txt")], "without the licence"),
        (
            lambda names: [name for name in names if "queues.cpy" not in name],
            "queues is not compiled in it",
        ),
        (
            lambda names: [name for name in names if name != "pystorm_source/py.typed"],
            "without pystorm_source/py.typed",
        ),
        (
            lambda names: [name for name in names if name != "pystorm_source/errors/__init__.py"],
            "without pystorm_source/errors",
        ),
        (lambda names: [name for name in names if "scripts" not in name], "without the script pystorm-python"),
    ],
)
def test_a_wheel_with_a_fault_is_refused(change, said, tmp_path):
    wrong = CONTENTS["faults_of_wheel"](wheel(tmp_path, change(complete())))
    assert any(said in fault for fault in wrong)


def test_a_wheel_of_more_than_three_megabytes_is_refused(tmp_path):
    (wrong,) = CONTENTS["faults_of_wheel"](wheel(tmp_path, complete(), size=3_000_000))
    assert "more than 3,000,000" in wrong


def test_a_folder_without_a_wheel_or_with_two_sdists_is_refused(tmp_path):
    assert CONTENTS["main"](tmp_path) == [f"no wheel in {tmp_path}", f"0 sdists in {tmp_path}, not 1"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, ""),
        ({"Name": "another"}, "Name is 'another'"),
        ({"Version": "99"}, "Version is '99'"),
        ({"License_Expression": "Apache-2.0"}, "License-Expression is"),
        ({"License_File": "LICENSE"}, "License-File names no pystorm_source/observe/page/vendor/LICENSES.txt"),
        ({"Description_Content_Type": ""}, "Description-Content-Type is ''"),
    ],
)
def test_metadata_are_those_of_the_project(changed, said, tmp_path):
    pytest.importorskip("readme_renderer.markdown")
    readme = (ROOT / "README.md").read_text()
    path = wheel(tmp_path, [], text=f"{metadata(**changed)}\n{readme}")
    wrong = CHECK["faults_of_metadata"](CHECK["metadata_of"](path))
    assert (said in wrong[0] and len(wrong) == 1) if said else wrong == []


def test_a_readme_that_renders_to_nothing_is_refused():
    pytest.importorskip("readme_renderer.markdown")
    assert CHECK["faults_of_readme"]("") == [f"README.md does not render: no {p}" for p in ("<h1", "<pre", "<table")]


def test_what_twine_refuses_is_a_fault(tmp_path):
    """A wheel that describes nothing: an index would show an empty page."""
    pytest.importorskip("twine")
    wheel(tmp_path, complete(), text=metadata())
    archive(tmp_path / f"pystorm_source-{__version__}.tar.gz", [f"pystorm_source-{__version__}/PKG-INFO"], 1, "a")
    (said,) = [fault for fault in CHECK["faults_of_archives"](tmp_path) if fault.startswith("twine check --strict")]
    assert "long_description" in said or "description" in said.lower()


def archive(path: Path, names: list[str], time: int, user: str) -> Path:
    """An sdist as two builders would make it: another order, time, user and permission of the group."""
    with gzip.GzipFile(path, "wb", mtime=time) as packed, tarfile.open(fileobj=packed, mode="w") as made:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.uname, member.mode = 4, time, user, 0o664 if user == "a" else 0o600
            made.addfile(member, io.BytesIO(b"text"))
    return path


def test_the_same_sources_give_the_same_sdist(tmp_path):
    first = archive(tmp_path / "1.tar.gz", ["p/a", "p/b"], 1_700_000_000, "a")
    second = archive(tmp_path / "2.tar.gz", ["p/b", "p/a"], 1_800_000_000, "b")
    assert first.read_bytes() != second.read_bytes()
    packed = SDIST["repack"](first, 1_600_000_000)
    assert packed == SDIST["repack"](second, 1_600_000_000) != SDIST["repack"](second, 1_600_000_001)
    with tarfile.open(fileobj=io.BytesIO(packed)) as inside:
        assert [(each.name, each.mtime, each.uname) for each in inside] == [
            ("p/a", 1_600_000_000, ""),
            ("p/b", 1_600_000_000, ""),
        ]
        assert inside.extractfile("p/a").read() == b"text"


def test_the_time_of_an_sdist_is_source_date_epoch_or_that_of_the_last_commit(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1234567890")
    assert SDIST["epoch"]() == 1234567890
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert SDIST["epoch"]() >= 315532800
