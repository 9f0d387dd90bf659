"""``pystorm-source run``: a topology in this process, without Spark, watched."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from typing import Annotated, Any

import typer
from rich.console import Console

from pystorm_source.cli.displays.run import End, JsonDisplay, LinesDisplay, TableDisplay
from pystorm_source.cli.displays.summed_log import SummedLog
from pystorm_source.cli.topology_argument import Environment, Overrides, Reference, plan_here, usage_errors
from pystorm_source.clock import Clock, SystemClock
from pystorm_source.errors import OptionError, PystormError, TupleFailed, UsageError
from pystorm_source.errors.failure_block import FailureBlock
from pystorm_source.options.duration import parse_duration
from pystorm_source.plan import check_meetings
from pystorm_source.types.json_values import json_of
from pystorm_source.worker import OutputPlan
from pystorm_source.worker.failure import AGAIN
from pystorm_source.worker.local_run import LocalRun

logger = logging.getLogger("pystorm.run")

FIRST_RANGE = 128
ALL_READ = "all input is read"
NOTHING_READ = "there was nothing to read"
TIME_OVER = "the time of --for is over"
INTERRUPTED = "by Ctrl-C"
INTERRUPTED_STATUS = 130  # 128 + SIGINT, as shells have it
QUIET_SECONDS = 5.0
"""After so long without new input, spouts count as finite if they have never grown and their classes do not say that
they may. Less: a slow source looks finite. More: a finite one keeps you waiting."""
ENDLESS_SECONDS = 10.0
"""With ``--once``: after so long, the log says that spouts without offsets have no end. Less: it says so of spouts
that only need a while. More: you wonder why nothing ends."""
LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def run(
    topology: Reference,
    options: Overrides = None,
    duration: Annotated[
        str, typer.Option("--for", metavar="DURATION", help="Stop after this time: a number with ms, s, m, h or d.")
    ] = "",
    once: Annotated[bool, typer.Option("--once", help="Stop when nothing is left to read.")] = False,
    environment: Environment = "",
    together: Annotated[
        bool, typer.Option("--together", help="Run all spouts in one worker, as Storm does but Spark does not.")
    ] = False,
    rows: Annotated[
        int, typer.Option("--rows", min=0, help="Print up to this many rows of each stream without a subscriber.")
    ] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print only one JSON object, at the end.")] = False,
) -> None:
    """Run a topology here, without Spark, and show what each component does.

    It ends when all bounded spouts are read, when --once or --for says so, on Ctrl-C (exit status 130), or when a
    component fails (exit status 1).
    """
    clock = SystemClock()
    end, status = End(TIME_OVER), 0
    # Components may print; with --json, stdout must hold nothing but the object.
    with usage_errors(), redirect_stdout(sys.stderr) if as_json else nullcontext():
        seconds = parse_duration("--for", duration) if duration else float("inf")
        plan = plan_here(topology, environment, config_of(options or []))
        if not together:
            check_meetings(plan)
        streams = [(component.name, stream.name) for component, stream in plan.open_streams]
        captured = streams if rows else ()
        local = LocalRun(plan, clock, captured=captured, together=together, output=OutputPlan.typed(plan))
        display = (JsonDisplay if as_json else TableDisplay if _live() else LinesDisplay)(local, clock, rows)
        try:
            # Order: the live table replaces sys.stderr before the log begins, so that log lines appear above it.
            with display, summed_log(clock):
                end = End(follow(local, clock, clock.monotonic() + seconds, once, display.beat))
        except KeyboardInterrupt:
            end, status = End(INTERRUPTED), INTERRUPTED_STATUS
        except UsageError:
            raise
        except TupleFailed as error:
            block = FailureBlock.of(error)
            block = block._replace(
                remedy=_conf_remedy(error) or block.remedy.replace(AGAIN, "correct the component and run it again")
            )
            end, status = End("a component failed", str(block)), 1
        except PystormError as error:
            end, status = End("a component failed", f"{type(error).__name__}: {error}"), 1
        finally:
            local.stop()
    display.show_end(end)
    raise typer.Exit(status)


def _conf_remedy(error: TupleFailed) -> str:
    """Returns the remedy for a key that ``initialize`` misses in the configuration; "" for any other error."""
    cause = error.__cause__
    key = cause.args[0] if isinstance(cause, KeyError) and cause.args else None
    if not isinstance(key, str) or "initialize() raised" not in str(error):
        return ""
    return f"give it by -o {key}=..., or have the component do without: conf.get({key!r}, ...)"


@contextmanager
def summed_log(clock: Clock) -> Iterator[None]:
    """Logs to standard error, unless the topology's module has set up logging by itself."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(LOG_FORMAT))
    summed = SummedLog(handler, clock)
    logging.basicConfig(level=logging.INFO, handlers=[summed])
    try:
        yield
    finally:
        summed.say_counts()


def _live() -> bool:
    """Whether stdout is a terminal that can redraw a table."""
    return sys.stdout.isatty() and not Console().is_dumb_terminal


def follow(
    local: LocalRun,
    clock: Clock,
    end: float,
    once: bool,
    beat: Callable[[], None],
    round_seconds: float = 1.0,
    poll_seconds: float = 0.2,
) -> str:
    """Blocking, until the clock reads ``end`` or all input of bounded spouts is read; with ``once``, until no spout has
    input left. Returns why it ended.

    Polls spouts without offsets for ``round_seconds`` at a time, sizes ranges so that a micro-batch takes about as
    long, and calls ``beat`` after each.
    """
    listens = bool(local.without_offsets)

    def all_read() -> str:
        return ALL_READ if listens or local.unread.found else NOTHING_READ

    most = FIRST_RANGE
    read_last = clock.monotonic()
    wonder_at = read_last + ENDLESS_SECONDS if once and listens else float("inf")
    while (began := clock.monotonic()) < end:
        unread = local.unread.look()
        idle = True
        if unread or listens:
            idle = local.round(local.unread.next_ranges(most), min(round_seconds, end - began), until_idle=once)
            took = clock.monotonic() - began
            if took < round_seconds / 4:
                most *= 2
            elif took > round_seconds:
                most = max(1, int(most * round_seconds / took))
            read_last = clock.monotonic()
        elif (over := local.unread.over()) or (over is None and began - read_last >= QUIET_SECONDS):
            return all_read() if over else f"{all_read()}: no spout had more for {QUIET_SECONDS:.0f} s"
        elif not once:
            clock.sleep(min(poll_seconds, max(0.0, end - began)))
        beat()
        if once and idle and not unread:
            return all_read()
        if began >= wonder_at:
            wonder_at = float("inf")
            logger.warning(
                "--once ends when %s had nothing in a turn, and in %.0f s there always was something: end it by Ctrl-C "
                "or with --for 10s",
                " and ".join(map(repr, local.without_offsets)),
                ENDLESS_SECONDS,
            )
    return TIME_OVER


def config_of(options: list[str]) -> dict[str, Any]:
    """Parses ``KEY=VALUE`` texts into a configuration; a value that is JSON is read as JSON. Raises OptionError."""
    config: dict[str, Any] = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not equals or not key.strip():
            raise OptionError(
                f"-o takes KEY=VALUE, such as -o topology.debug=true. Given: {option!r}", code="PYSTORM_INVALID_OPTION"
            )
        try:
            config[key.strip()] = json_of(value)
        except ValueError:
            config[key.strip()] = value
    return config
