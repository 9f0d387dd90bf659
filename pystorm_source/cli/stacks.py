"""``pystorm-source stacks``: why queries on this machine stand still."""

from typing import Annotated

import typer

from pystorm_source.cli.topology_argument import usage_errors
from pystorm_source.errors import UsageError
from pystorm_source.records.question import WAIT_SECONDS, ask
from pystorm_source.records.record_folder import private_folders, question_paths
from pystorm_source.records.standstill import Stacks


def stacks(
    wait: Annotated[float, typer.Option("--wait", min=0.1, max=60.0, help="Seconds for the answers.")] = WAIT_SECONDS,
) -> None:
    """Show why queries stand still: which component is in a call, since when, at which line, and what waits for it.

    It asks the tasks of all queries of this package whose driver runs on this machine, as this user, over the
    connections by which they report. The tasks go on meanwhile. A query with the option feedback=off has none, and
    one whose first micro-batch has not begun has none yet.
    """
    with usage_errors():
        found = ask([path for folder in private_folders() for path in question_paths(folder)], wait)
        if not found:
            raise UsageError(
                "no query on this machine can be asked: run it on the driver's machine as the driver's user, while a "
                "micro-batch runs, without feedback=off. Given: no driver that answers",
                code="PYSTORM_NO_STACKS",
            )
    typer.echo(str(Stacks(runs=found)))
