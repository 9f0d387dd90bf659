"""``pystorm-source migrate``: turns a streamparse project into one for Spark, beside it."""

from pathlib import Path
from typing import Annotated

import typer

from pystorm_source.cli.migration.changes import Changes
from pystorm_source.cli.migration.new_project import new_files, write_files
from pystorm_source.cli.migration.project import read_project
from pystorm_source.cli.migration.report import report
from pystorm_source.cli.topology_argument import usage_errors
from pystorm_source.errors import OptionError


def migrate(
    folder: Annotated[
        str, typer.Argument(metavar="DIR", help="The streamparse project: src/, topologies/, config.json.")
    ],
    output: Annotated[
        str, typer.Option("--output", metavar="FOLDER", help="The new project. Default: DIR-spark.")
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only report; write nothing.")] = False,
) -> None:
    """Read a streamparse project, report what stays and what changes, and write a project for Spark next to it.

    It does not change DIR, run its code, or overwrite existing files.
    """
    with usage_errors():
        root = Path(folder).resolve()
        changes = Changes(read_project(root))
        target = Path(output).resolve() if output else root.with_name(f"{root.name}-spark")
        if target == root or root in target.parents:
            raise OptionError(
                f"--output lies in the project itself, which stays as it is: choose another folder. Given: {output!r}",
                code="PYSTORM_INVALID_OPTION",
            )
        files = new_files(changes, root.name)
        typer.echo(report(changes), nl=False)
        if dry_run:
            typer.echo(f"\nnothing is written; without --dry-run {target} would have these files:")
            typer.echo("".join(f"    {path}\n" for path in sorted(files)), nl=False)
            return
        new, kept = write_files(files, target)
    typer.echo(_written(target, new, kept))
    if new and changes.jobs:
        path = f"topologies/{changes.jobs[0].topology.file.path.name}"
        typer.echo(
            f"\n    cd {_near(target)}\n    pip install -e '.[test,spark]'\n    python -m pytest\n"
            f"    pystorm-source check {path}\n    python job.py {changes.jobs[0].name} --once"
        )


def _written(target: Path, new: list[str], kept: list[str]) -> str:
    if not new:
        return (
            f"\nnothing is new: all {len(kept)} files are in {_near(target)} already. To begin anew, remove that "
            f"folder, or give another one by --output"
        )
    text = f"\nwrote {len(new)} files to {_near(target)}"
    if kept:
        text += f"; left as they were: {', '.join(kept)}"
    return text


def _near(path: Path) -> str:
    """Shortens the path if it is in the working folder or beside it."""
    here = Path.cwd()
    if here in path.parents:
        return path.relative_to(here).as_posix()
    return f"../{path.name}" if here.parent == path.parent else str(path)
