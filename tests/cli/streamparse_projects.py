"""Projects of streamparse's for the tests of ``migrate``: its own quickstart, and others typed here."""

import shutil
from pathlib import Path


def quickstart(their_sources: Path, folder: Path) -> Path:
    """What `sparse quickstart wordcount` makes, from the templates in the released package."""
    (template,) = their_sources.glob("streamparse-*/streamparse/bootstrap/project")
    made = folder / "wordcount"
    shutil.copytree(template, made)
    for path in [*made.glob("*.jinja2.*")]:
        text = path.read_text().replace("{{ project_name }}", "wordcount")
        path.with_name(path.name.replace(".jinja2", "")).write_text(text)
        path.unlink()
    return made


def typed(folder: Path, files: dict[str, str]) -> Path:
    """A project of these files."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def snapshot(folder: Path) -> dict[str, bytes]:
    """Path → content of every file."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
