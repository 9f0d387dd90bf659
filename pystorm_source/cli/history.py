"""``pystorm-source history``: the page of a run that is over, as one HTML file."""

from pathlib import Path
from typing import Annotated

import typer

from pystorm_source.cli.topology_argument import usage_errors
from pystorm_source.errors import OptionError
from pystorm_source.observe.page.document import document
from pystorm_source.observe.page.runs import recorded, view_of


def history(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A record file: NAME-RUN.jsonl.")],
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Default: NAME-RUN.html in the working folder.")
    ] = None,
) -> None:
    """Write the page of a run into one HTML file, which a browser shows without a network.

    The record files of a query are kept if its option progress.path names a folder. It prints the path of the page.
    """
    with usage_errors():
        page = output or Path(f"{file.stem}.html")
        text = document(view_of(recorded(file), file.stem))
        try:
            page.write_text(text, encoding="utf-8")
        except OSError as error:
            raise OptionError(
                f"--output cannot be written ({error.strerror}): give a file in a folder that is there and writable. "
                f"Given: {str(page)!r}",
                code="PYSTORM_NOT_WRITABLE",
            ) from None
    typer.echo(page)
