"""``pystorm-source draw``: draws a topology as text, a Mermaid flowchart, SVG, PNG or PDF."""

import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pystorm_source.cli.topology_argument import Environment, Reference, plan_here, usage_errors
from pystorm_source.errors import OptionError
from pystorm_source.errors.packages import installing
from pystorm_source.plan import Plan
from pystorm_source.plan.cut_costs import cut_costs
from pystorm_source.plan.layered_svg import FONTS, as_svg
from pystorm_source.plan.picture import Picture, as_mermaid, as_text
from pystorm_source.plan.stages import cut, stage_of_each


class Format(StrEnum):
    """The formats of a picture."""

    text = "text"
    mermaid = "mermaid"
    svg = "svg"
    png = "png"
    pdf = "pdf"


class Scope(StrEnum):
    """Where groupings apply."""

    task = "task"
    cluster = "cluster"


SUFFIXES = {
    ".svg": Format.svg,
    ".png": Format.png,
    ".pdf": Format.pdf,
    ".mmd": Format.mermaid,
    ".mermaid": Format.mermaid,
    ".txt": Format.text,
}
BINARY = (Format.png, Format.pdf)
PNG_SCALE = 2.0
"""Pixels per SVG pixel. Less: text is blurred on modern screens. More: files are larger."""


def draw(
    topology: Reference,
    form: Annotated[Format | None, typer.Option("--format", help="Default: by FILE's suffix, otherwise text.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Write to FILE instead of the terminal.")
    ] = None,
    scope: Annotated[
        Scope, typer.Option("--scope", help="cluster: also show the stages of read_stream(..., scope='cluster').")
    ] = Scope.task,
    environment: Environment = "",
) -> None:
    """Draw a topology: components, tasks, streams, groupings, and the streams that Spark gets as rows."""
    with usage_errors():
        plan = plan_here(topology, environment)
        form = form or _form_of(output)
        if output is None and form in BINARY and sys.stdout.isatty():
            raise OptionError(
                f"--format {form} is no text: give --output FILE.{form}, or redirect stdout. Given: a terminal",
                code="PYSTORM_INVALID_OPTION",
            )
        stages = stage_of_each(plan) if scope is Scope.cluster else None
        picture = drawn(plan, form, stages)
        if stages is not None and form is Format.text:
            picture = "\n".join([str(picture), *cut_costs(cut(plan, _leaving(plan))), ""])
        if output is None:
            typer.echo(picture, nl=False)
            return
        try:
            output.write_bytes(picture if isinstance(picture, bytes) else picture.encode())
        except OSError as error:
            raise OptionError(
                f"--output cannot be written ({error.strerror}): give a file in a folder that is there and writable. "
                f"Given: {str(output)!r}",
                code="PYSTORM_NOT_WRITABLE",
            ) from None
        typer.echo(f"written: {output}")


def _leaving(plan: Plan) -> list[tuple[str, str]]:
    return [(component.name, stream.name) for component, stream in plan.open_streams]


def _form_of(output: Path | None) -> Format:
    suffix = output.suffix.lower() if output else ""
    if suffix and suffix not in SUFFIXES:
        raise OptionError(
            f"--output takes a file that ends in {', '.join(SUFFIXES)}, or name the format by --format. Given: "
            f"{str(output)!r}",
            code="PYSTORM_INVALID_OPTION",
        )
    return SUFFIXES.get(suffix, Format.text)


def drawn(plan: Plan, form: Format, stages: Mapping[str, int] | None = None) -> str | bytes:
    """Draws the plan in that form; a text ends with a newline. ``stages``: component → number of its stage, if the plan
    is cut. Raises OptionError if a required package is missing."""
    if form in BINARY:
        return _converted(as_svg(Picture.of(plan, stages)), form)
    if form is Format.svg:
        return as_svg(Picture.of(plan, stages))
    return as_mermaid(plan, stages) if form is Format.mermaid else as_text(plan, stages)


def _converted(svg: str, form: Format) -> bytes:
    try:
        import cairosvg
    except ModuleNotFoundError as error:
        raise OptionError(
            f"--format {form} needs the package cairosvg: {installing('draw')}, or write .svg. "
            f"Given: no module {error.name!r}",
            code="PYSTORM_PACKAGE_MISSING",
        ) from None
    except OSError:
        raise OptionError(
            f"--format {form} needs the library cairo of the system (Debian: apt-get install libcairo2; macOS: brew "
            f"install cairo), or write .svg. Given: cairosvg, which does not find it",
            code="PYSTORM_PACKAGE_MISSING",
        ) from None
    # cairosvg takes the first family of a list even if it is not installed.
    source = svg.replace(FONTS, "monospace").encode()
    return bytes(cairosvg.svg2pdf(source) if form is Format.pdf else cairosvg.svg2png(source, scale=PNG_SCALE))
