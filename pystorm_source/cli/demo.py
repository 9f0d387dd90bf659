"""``pystorm-source demo``: word count over prose as a streaming query: slowed down, damaged, and proven exact."""

import json
import os
import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer

from pystorm_source.cli.show.acts import EASY_SECONDS, Acts, set_service
from pystorm_source.cli.show.display import Lines, Silence, Terminal, kilobytes
from pystorm_source.cli.show.proof import Proof
from pystorm_source.cli.show.query import Query
from pystorm_source.cli.show.text import GrowingFiles, gather
from pystorm_source.cli.word_count import WordCount
from pystorm_source.clock import SystemClock
from pystorm_source.environment import prepare_spark
from pystorm_source.errors import PystormError, traced
from pystorm_source.plan import compile_plan
from pystorm_source.plan.picture import as_text

STARTS = 2
START_SECONDS = 180.0
NO_ANSWER = "Python worker failed to connect back"


def demo(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON line instead of progress and a table.")
    ] = False,
    megabytes: Annotated[float, typer.Option(min=0.1, help="Minimum amount of text to count.")] = 1.6,
    seconds: Annotated[float, typer.Option(min=0.0, help="Seconds that writing the text takes.")] = 20.0,
) -> None:
    """Count words of growing files in a real query, slow it down, kill a worker; exit 1 unless all checks pass."""
    stop = _Signals()
    display = Silence() if as_json else Terminal() if sys.stdout.isatty() else Lines()
    descriptor, name = tempfile.mkstemp(prefix="pystorm-demo-", suffix=".log")
    os.close(descriptor)
    log = Path(name)
    try:
        with stop, display, tempfile.TemporaryDirectory(prefix="pystorm-demo-") as scratch:
            proof = _Demo(Path(scratch), log, display, stop).run(megabytes, seconds)
    except KeyboardInterrupt:
        log.unlink()
        typer.echo("stopped before the end: nothing was proven", err=True)
        raise typer.Exit(128 + (stop.got or signal.SIGINT)) from None
    except Exception as error:
        with log.open("a") as file:
            file.write(traced(error))
        typer.echo(f"error: {remedy(error)} The whole story: {log}", err=True)
        raise typer.Exit(1) from None
    log.unlink()
    if as_json:
        typer.echo(json.dumps(proof.facts()))
    else:
        typer.echo("\n".join(proof.lines()))
    raise typer.Exit(0 if proof.proven else 1)


class _Signals:
    """Records Ctrl-C and SIGTERM instead of raising inside a call to Java, which would then be out of step."""

    got: int | None = None

    def __enter__(self) -> None:
        self._before = {number: signal.signal(number, self._note) for number in (signal.SIGINT, signal.SIGTERM)}

    def __exit__(self, *ignored: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.got = number

    def own(self) -> None:
        """Takes SIGINT back from Spark, which would cancel the query's jobs."""
        signal.signal(signal.SIGINT, self._note)

    def check(self) -> None:
        """Raises KeyboardInterrupt if there was one."""
        if self.got is not None:
            raise KeyboardInterrupt


class _Demo:
    """One run. ``scratch``: a folder for its files; ``log``: a file for all that Spark prints."""

    def __init__(self, scratch: Path, log: Path, display: Silence, stop: _Signals):
        self._scratch = scratch
        self._log = log
        self._display = display
        self._stop = stop
        self._clock = SystemClock()
        self._service = scratch / "service" / "seconds"

    def run(self, megabytes: float, seconds: float) -> Proof:
        """Blocking, from the drawing to the proof."""
        self._display.line(as_text(compile_plan(WordCount)))
        java = prepare_spark(local=True)
        self._service.parent.mkdir()
        set_service(self._service, EASY_SECONDS)
        (self._scratch / "text").mkdir()
        files = GrowingFiles(self._scratch / "text", gather(int(megabytes * 1e6)), seconds=seconds)
        with ExitStack() as last:
            query, acts = self._started(files, java.version, last)
            last.callback(files.stop)
            began = self._clock.monotonic()
            self._display.line(f"-> a writer appends {kilobytes(round(files.per_second))} a second to the files")
            acts.easy()
            slowdown = acts.slow()
            kill = acts.kill()
            acts.end()
            taken = self._clock.monotonic() - began
            return Proof(query.counts(), files.count_words(), acts.ran, taken, slowdown, kill)

    def _started(self, files: GrowingFiles, java: str, last: ExitStack) -> tuple[Query, Acts]:
        """Returns the query and its acts once a micro-batch is done. Retries a failed start once."""
        # Imported late: `pystorm-source --help` needs no Spark.
        from pystorm_source.spark.session import local_session

        spark: Any = None
        for attempt in range(1, STARTS + 1):
            began = self._clock.monotonic()
            query = None
            try:
                if spark is None:
                    self._display.line(f"Spark starts, with Java {java} ...")
                    spark = local_session("pystorm demo", self._log)
                    last.callback(spark.stop)
                    self._stop.own()
                    self._display.line(f"Spark {spark.version} is up; its UI: {spark.sparkContext.uiWebUrl}")
                self._stop.check()
                self._display.line(f"the query starts, {kilobytes(files.written)} of text wait in two files ...")
                query = Query(spark, files.folder, self._scratch / f"checkpoint-{attempt}", self._service)
                acts = Acts(query, files, self._service, self._display, self._clock, self._stop.check)
                if not acts.first(START_SECONDS):
                    raise TimeoutError(f"the first micro-batch took longer than {START_SECONDS:g} s")
            except Exception as error:
                if query is not None:
                    query.stop()
                if attempt == STARTS:
                    raise
                took = self._clock.monotonic() - began
                self._display.line(f"the start failed after {took:.0f} s ({_reason(error)}): once more")
            else:
                last.callback(query.stop)
                return query, acts
        raise AssertionError("unreachable")


def remedy(error: Exception) -> str:
    """Says in one line what went wrong and what to do."""
    if isinstance(error, PystormError):
        return str(error)
    reason = _reason(error)
    if reason == NO_ANSWER:
        python = os.environ.get("PYSPARK_PYTHON", "python3")
        return (
            f"{reason}: Spark gives a Python process 10 s to start. Try again when the machine is less busy; "
            f"`pystorm-source check` measures the start. Given: PYSPARK_PYTHON={python!r}."
        )
    if "JAVA_GATEWAY_EXITED" in reason:
        return (
            f"Java did not start: `pystorm-source check` looks at it. Given: JAVA_HOME={os.environ.get('JAVA_HOME')!r}."
        )
    return f"{reason.rstrip('.')}."


def _reason(error: Exception) -> str:
    """Returns one line of the message, as ``explain`` finds it in Spark's longer ones."""
    from pystorm_source.query.explain import reason_in

    text = str(error)
    return NO_ANSWER if "failed to connect back" in text else reason_in(text) or type(error).__name__
