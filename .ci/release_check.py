"""Whether a release could be made of this checkout: ``make release-check``. Exit status 1 and a line per fault if not.

It builds the sdist twice and compares the bytes, builds a wheel from it, and asks of both what an index and a user
would: contents, size, metadata, licences, a README that renders, a changelog that has the version; and the documents.
``--tag v1.2.3``: the tag also has to be the version, and its heading in the changelog has to have a date.
``--dist FOLDER`` looks at the archives in a folder, such as those that a workflow has built, and builds nothing.
``--notes`` prints the changelog's section of the version, for the page of the release, and checks nothing.
"""

import argparse
import email
import re
import runpy
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Callable
from email.message import Message
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
VERSION = runpy.run_path(str(ROOT / "pystorm_source/version.py"))["__version__"]
LEFT = {
    "authors": "pyproject.toml names no authors",
    "urls": "pyproject.toml has no [project.urls], so the relative links of README.md lead nowhere on an index",
}
"""What only a person can give; a release without it is complete, but poor."""


def faults_of_version(tag: str, changelog: str, version: str = VERSION) -> list[str]:
    """Whether tag, version and changelog name the same release; an empty tag: there is none yet."""
    found = re.search(rf"^## \[{re.escape(version)}\] - (.+)$", changelog, re.MULTILINE)
    if found is None:
        return [f"CHANGELOG.md has no heading '## [{version}] - DATE'"]
    if not tag:
        return []
    wrong = [] if tag == f"v{version}" else [f"the tag is {tag}, and pystorm_source/version.py has {version}"]
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", found[1]):
        wrong.append(f"CHANGELOG.md has {found[1]!r} for a date of {version}")
    return wrong


def notes(changelog: str, version: str = VERSION) -> str:
    """What the changelog says of the version, without its heading."""
    (section,) = re.findall(
        rf"^## \[{re.escape(version)}\][^\n]*\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL
    )
    return str(section.strip())


def faults_of_metadata(metadata: Message) -> list[str]:
    """Whether an archive says of itself what pyproject.toml does, and shows a README that is not empty."""
    wanted = {
        "Name": PROJECT["name"],
        "Version": VERSION,
        "Requires-Python": ",".join(sorted(PROJECT["requires-python"].split(","), reverse=True)),
        "License-Expression": PROJECT["license"],
        "Description-Content-Type": "text/markdown",
        "Summary": PROJECT["description"],
    }
    given = {name: str(metadata.get(name, "")) for name in wanted}
    given["Requires-Python"] = ",".join(sorted(given["Requires-Python"].split(","), reverse=True))
    wrong = [f"{name} is {given[name]!r}, not {value!r}" for name, value in wanted.items() if given[name] != value]
    licences = set(metadata.get_all("License-File", []))
    wrong += [f"License-File names no {name}" for name in PROJECT["license-files"] if name not in licences]
    return wrong + faults_of_readme(str(metadata.get_payload()))


def faults_of_readme(text: str) -> list[str]:
    """Whether an index would show it, with its headings and its code."""
    from readme_renderer import markdown

    shown = markdown.render(text) or ""
    return [f"README.md does not render: no {part}" for part in ("<h1", "<pre", "<table") if part not in shown]


def metadata_of(archive: Path) -> Message:
    """What a wheel or an sdist says of itself."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as inside:
            (name,) = (each for each in inside.namelist() if each.endswith(".dist-info/METADATA"))
            return email.message_from_bytes(inside.read(name))
    with tarfile.open(archive) as packed:
        (name,) = (each for each in packed.getnames() if re.fullmatch(r"[^/]+/PKG-INFO", each))
        found = packed.extractfile(name)
        assert found is not None
        return email.message_from_bytes(found.read())


def faults_of_archives(folder: Path) -> list[str]:
    """Contents, metadata, and what twine has to say."""
    archives = [*sorted(folder.glob("*.whl")), *sorted(folder.glob("*.tar.gz"))]
    wrong = list(runpy.run_path(str(ROOT / ".ci/gates/wheel_contents.py"))["main"](folder))
    for archive in archives:
        wrong += [f"{archive.name}: {fault}" for fault in faults_of_metadata(metadata_of(archive))]
    said = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *archives], capture_output=True, text=True
    )
    return wrong if said.returncode == 0 else [*wrong, f"twine check --strict: {said.stdout}{said.stderr}"]


def built(folder: Path) -> list[str]:
    """Builds the sdist, again in another folder, and a wheel of it. Blocking: the compiler takes minutes."""
    build = runpy.run_path(str(ROOT / ".ci/sdist.py"))["build"]
    with tempfile.TemporaryDirectory() as other:
        first, second = build(folder), build(Path(other))
        same = first.read_bytes() == second.read_bytes()
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*command, "--no-build-isolation", "--wheel-dir", folder, first], cwd=folder, check=True)
    return [] if same else [f"{first.name}: two builds of the same sources differ"]


def faults_of_documents() -> list[str]:
    """Whether the site builds, each warning an error."""
    done = subprocess.run(["make", "--no-print-directory", "docs"], cwd=ROOT, capture_output=True, text=True)
    return [] if done.returncode == 0 else [f"make docs: {done.stdout}{done.stderr}"]


def main(arguments: list[str]) -> int:
    """Blocking; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--tag", default="", help="the tag of the release, such as v1.2.3")
    parser.add_argument("--dist", type=Path, help="a folder with archives: build nothing")
    parser.add_argument("--notes", action="store_true", help="print the changelog's section, check nothing")
    asked = parser.parse_args(arguments)
    changelog = (ROOT / "CHANGELOG.md").read_text()
    if asked.notes:
        print(notes(changelog))
        return 0
    steps: list[Callable[[], list[str]]] = [lambda: faults_of_version(asked.tag, changelog)]
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.dist or Path(temporary)
        if asked.dist is None:
            steps += [faults_of_documents, lambda: built(folder)]
        wrong = [fault for step in [*steps, lambda: faults_of_archives(folder)] for fault in step()]
    for fault in wrong:
        print(f"fault: {fault}", file=sys.stderr)
    for key, lacking in LEFT.items():
        if key not in PROJECT:
            print(f"left to the maintainer: {lacking}")
    print(f"{PROJECT['name']} {VERSION}: {len(wrong)} faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
