"""``pystorm-source draw``: the picture of a topology as text, as a Mermaid flowchart or as SVG."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pystorm_source.cli.topology_argument import Environment, Reference, plan_here, usage_errors
from pystorm_source.errors import OptionError
from pystorm_source.plan import Plan
from pystorm_source.plan.layered_svg import as_svg
from pystorm_source.plan.picture import Picture, as_mermaid, as_text


class Format(StrEnum):
    """The formats of a picture."""

    text = "text"
    mermaid = "mermaid"
    svg = "svg"


SUFFIXES = {".svg": Format.svg, ".mmd": Format.mermaid, ".mermaid": Format.mermaid, ".txt": Format.text}


def draw(
    topology: Reference,
    form: Annotated[Format | None, typer.Option("--format", help="Default: by the suffix of FILE, else text.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Write it there, not to the terminal.")
    ] = None,
    environment: Environment = "",
) -> None:
    """Draw a topology: components, tasks, streams, groupings, and the streams that leave as rows."""
    with usage_errors():
        plan = plan_here(topology, environment)
        picture = drawn(plan, form or _form_of(output))
        if output is None:
            typer.echo(picture, nl=False)
            return
        try:
            output.write_text(picture, encoding="utf-8")
        except OSError as error:
            raise OptionError(
                f"--output cannot be written ({error.strerror}): give a file in a folder that is there and writable. "
                f"Given: {str(output)!r}",
                code="PYSTORM_NOT_WRITABLE",
            ) from None


def _form_of(output: Path | None) -> Format:
    suffix = output.suffix.lower() if output else ""
    if suffix and suffix not in SUFFIXES:
        raise OptionError(
            f"--output takes a file that ends in {', '.join(SUFFIXES)}, or name the format by --format. Given: "
            f"{str(output)!r}",
            code="PYSTORM_INVALID_OPTION",
        )
    return SUFFIXES.get(suffix, Format.text)


def drawn(plan: Plan, form: Format) -> str:
    """The picture in that form; ends with a newline."""
    if form is Format.svg:
        return as_svg(Picture.of(plan))
    return as_mermaid(plan) if form is Format.mermaid else as_text(plan)
