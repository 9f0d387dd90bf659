"""``pystorm-source quickstart``: a new project that runs and tests itself."""

import importlib.util
import keyword
import re
import string
import sys
import tempfile
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated

import typer

from pystorm_source.cli.topology_argument import usage_errors
from pystorm_source.errors import OptionError

SUFFIX = ".in"
RENAMED = {
    "gitignore": ".gitignore",  # a file of that name would hide files of this project from git
    "agents": ".agents",  # setuptools does not look into hidden folders
}
TAKEN = {"tests", "conf", "job", "feed", "server"}
TOPOLOGIES = {"words": "WordCount", "spout": "Orders", "rest": "Tickets", "queue": "Crates"}
"""The kinds of projects, each a folder of templates beside the common ones, and the topology of each."""


def quickstart(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the project and of its new folder.")],
    spout: Annotated[
        bool, typer.Option("--spout", help="A project whose spout reads a SQLite table, to adapt to your source.")
    ] = False,
    rest: Annotated[
        bool, typer.Option("--rest", help="A project whose spout reads a REST API, with a service to try it on.")
    ] = False,
    queue: Annotated[
        bool, typer.Option("--queue", help="A project whose spout reads a queue, with a queue to try it on.")
    ] = False,
) -> None:
    """Create a project: a topology that counts words, tests, settings, and a job for spark-submit."""
    chosen = [kind for kind, is_chosen in (("spout", spout), ("rest", rest), ("queue", queue)) if is_chosen]
    kind = chosen[0] if chosen else "words"
    with usage_errors():
        if len(chosen) > 1:
            flags = [f"--{each}" for each in chosen]
            raise OptionError(
                f"a project has one kind: leave out {' or '.join(flags)}. Given: {' '.join(flags)}",
                code="PYSTORM_OPTIONS_CONFLICT",
            )
        package = package_of(name)
        if is_project(Path(name), package):
            typer.echo(
                f"nothing is new: the project {name}/ is there already, and stays as it is. To begin anew, remove that "
                f"folder (rm -r {name}) and run this again, or choose another NAME."
            )
            return
        folder = make_project(name, Path.cwd(), kind)
    steps = [f"cd {folder.name}", "python -m pytest"]
    if kind == "words" or importlib.util.find_spec("pytest") is None:
        steps.insert(1, "pip install -e '.[test]'")
    if spout:
        steps.append("python feed.py 1000")
    if kind in ("rest", "queue"):
        steps.append("python server.py &")
    rows = 10 if kind == "words" else 3
    steps.append(f"pystorm-source run {package}.topology:{TOPOLOGIES[kind]} --once --rows {rows}")
    shown = "".join(f"    {step}\n" for step in steps)
    typer.echo(f"made {folder.name}/\n\n{shown}\nREADME.md there says more.")


def package_of(name: str) -> str:
    """Returns the Python package of a project. Raises OptionError for a name that gives no package name."""
    package = name.lower().replace("-", "_")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", package) or keyword.iskeyword(package):
        raise OptionError(
            f"NAME is letters, digits, '-' and '_', begins with a letter and is no keyword of Python, such as "
            f"word-count. Given: {name!r}",
            code="PYSTORM_INVALID_OPTION",
        )
    return package


def is_project(folder: Path, package: str) -> bool:
    """Whether such a project was made there before."""
    return (folder / "job.py").is_file() and (folder / package / "topology.py").is_file()


def make_project(name: str, where: Path, kind: str = "words") -> Path:
    """Makes the folder ``where/name``, completely or not at all. Raises OptionError if it cannot."""
    package = package_of(name)
    target = where / name
    if target.exists():
        raise OptionError(
            f"the folder is there already: remove it, or choose another NAME. Given: {name!r}",
            code="PYSTORM_INVALID_OPTION",
        )
    if package in TAKEN or package in sys.stdlib_module_names or importlib.util.find_spec(package) is not None:
        raise OptionError(
            f"a package {package!r} is there already, and one of the two would hide the other: choose another NAME. "
            f"Given: {name!r}",
            code="PYSTORM_INVALID_OPTION",
        )
    templates = resources.files("pystorm_source.cli") / "quickstart_files"
    try:
        with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=where) as half:
            made = Path(half) / name
            for part in ("common", kind):
                _fill(made, templates / part, {"name": name, "package": package, "topology": TOPOLOGIES[kind]})
            made.rename(target)
    except OSError as error:
        raise OptionError(
            f"the folder cannot be made ({error.strerror}): go to one where you may write. Given: {str(target)!r}",
            code="PYSTORM_NOT_WRITABLE",
        ) from None
    return target


def _fill(folder: Path, template: Traversable, names: dict[str, str]) -> None:
    """Writes the files of a template; appends the text to a file that already exists."""
    folder.mkdir(exist_ok=True)
    for entry in template.iterdir():
        if entry.is_dir():
            _fill(folder / RENAMED.get(entry.name, entry.name.replace("PACKAGE", names["package"])), entry, names)
        elif entry.name.endswith(SUFFIX):
            file = entry.name.removesuffix(SUFFIX)
            text = string.Template(entry.read_text(encoding="utf-8")).substitute(names)
            with (folder / RENAMED.get(file, file)).open("a", encoding="utf-8") as made:
                made.write(text)
