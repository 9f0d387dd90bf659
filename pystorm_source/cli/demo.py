"""``pystorm-source demo``: word count over real text as a streaming query, proved against an independent count."""

import json
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from pystorm_source.cli.demo_text import GrowingFiles, gather
from pystorm_source.clock import SystemClock
from pystorm_source.environment import prepare_spark

TOP = 10
POLL_SECONDS = 1.0
BYTES_PER_TRIGGER = 1_500_000


def demo(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON line instead of progress and a table.")
    ] = False,
    megabytes: Annotated[float, typer.Option(min=0.1, help="How much text to count.")] = 6.0,
    seconds: Annotated[float, typer.Option(min=0.0, help="How long the writer takes to append the later part.")] = 20.0,
) -> None:
    """Count words of growing files in a real streaming query; exit 1 unless the counts are exact."""
    prepare_spark()
    with tempfile.TemporaryDirectory(prefix="pystorm-demo-") as scratch:
        folder = Path(scratch, "text")
        folder.mkdir()
        files = GrowingFiles(folder, gather(int(megabytes * 1e6)), seconds=seconds)
        result = _run(files, folder, Path(scratch, "checkpoint"), quiet=as_json)
    if as_json:
        typer.echo(json.dumps(result))
    else:
        _show(result)
    raise typer.Exit(0 if result["match"] else 1)


def _run(files: GrowingFiles, folder: Path, checkpoint: Path, quiet: bool) -> dict[str, Any]:
    # Imported late: `pystorm-source --help` needs no Spark.
    from pystorm_source.cli.demo_query import Query
    from pystorm_source.source.session import local_session

    if not quiet:
        typer.echo(f"{files.size / 1e6:.1f} MB of text; starting Spark ...")
    clock = SystemClock()
    spark = local_session("pystorm demo")
    try:
        query = Query(spark, folder, checkpoint, BYTES_PER_TRIGGER)
        began = clock.monotonic()
        shown = ""
        while files.writing or not files.begun:
            query.wait(POLL_SECONDS)
            state = query.state()
            if state["batches"] and not files.begun:
                files.start()  # from now on lines are appended under a running query
            line = _progress_line(state)
            if not quiet and line != shown:
                _show_progress(line)
                shown = line
        query.drain()
        taken = clock.monotonic() - began
        state = query.state()
        counted = query.counts()
        query.stop()
    finally:
        files.stop()
        spark.stop()
    expected = files.count_words()
    top = sorted(counted.items(), key=lambda item: (-item[1], item[0]))[:TOP]
    return {
        "rows": state["rows"],
        "seconds": round(taken, 2),
        "batches": state["batches"],
        "top": [[word, n] for word, n in top],
        "match": counted == dict(expected) and state["rows"] == expected.total(),
    }


def _progress_line(state: dict[str, Any]) -> str:
    if not state["batches"]:
        return "waiting for the first micro-batch"
    return (
        f"batch {state['batch']:>4}   {state['rows_per_second']:>10,.0f} rows/s   {state['rows']:>12,} rows   "
        f"backlog {state['backlog']:>10,} bytes"
    )


def _show_progress(line: str) -> None:
    if sys.stdout.isatty():
        typer.echo("\r" + line, nl=False)
    else:
        typer.echo(line)


def _show(result: dict[str, Any]) -> None:
    typer.echo("")
    for word, n in result["top"]:
        typer.echo(f"{n:>10,}  {word}")
    rate = result["rows"] / result["seconds"] if result["seconds"] else 0
    typer.echo(
        f"{result['rows']:,} rows in {result['batches']} micro-batches, {result['seconds']} s, {rate:,.0f} rows/s"
    )
    typer.echo("equal to an independent count" if result["match"] else "NOT equal to an independent count")
