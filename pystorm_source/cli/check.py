"""``pystorm-source check``: checks the requirements of a streaming query with this source, and names the remedies."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from pystorm_source.cli.completion import topologies
from pystorm_source.errors import compiled
from pystorm_source.spark.java import OLDEST, advice, find_java, start_home, supported
from pystorm_source.spark.python_start import RUNNER, SLOW_SECONDS, SPARK_WAITS_SECONDS, seconds_to_start
from pystorm_source.spark.worker_python import quick_python
from pystorm_source.types.grammar import schema_text
from pystorm_source.version import __version__

if TYPE_CHECKING:
    from pystorm_source.plan import Plan

PROBE = Path(__file__).resolve().parent.parent / "spark" / "probe.py"
PROBE_TIMEOUT_SECONDS = 120
TRIED_PYTHONS = ((3, 11), (3, 12), (3, 13), (3, 14))
HOME = "pystorm_source.source.data_source"


class Finding(NamedTuple):
    """The result of one check."""

    item: str
    status: Literal["ok", "warn", "FAIL"]
    found: str
    remedy: str = ""


def check(
    topology: Annotated[
        str,
        typer.Argument(
            metavar="[TOPOLOGY]",
            help="Also check this topology: PACKAGE.MODULE:CLASS, FILE.py or FILE.py:CLASS.",
            autocompletion=topologies,
        ),
    ] = "",
    environment: Annotated[
        str,
        typer.Option("--environment", "-e", metavar="NAME", help="Entry to use where a component's par is a dict."),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of lines of text.")] = False,
) -> None:
    """Check Python, Java, PYSPARK_PYTHON, pyarrow, pyspark and the compiled core; exit with status 1 if one fails."""
    found = list(findings())
    if topology:
        found += topology_findings(topology, environment)
    fit = all(finding.status != "FAIL" for finding in found)
    if as_json:
        typer.echo(json.dumps({"ok": fit, "findings": [finding._asdict() for finding in found]}))
    else:
        for item, status, what, remedy in found:
            typer.echo(f"{status:4}  {item:21}  {what}" + (f"  ->  {remedy}" if remedy else ""))
    raise typer.Exit(0 if fit else 1)


def findings() -> Iterator[Finding]:
    """Checks one thing after the other. Starts other interpreters, never a Spark session."""
    here = ask(sys.executable)
    yield _python()
    yield _core()
    yield _pyarrow(here)
    yield from _pyspark(here)
    yield _java()
    yield from _spark_processes(here)


def topology_findings(reference: str, environment: str = "") -> Iterator[Finding]:
    """Checks whether a topology compiles, and whether it may do something unexpected. Does not run it."""
    if compiled.complaint():
        yield Finding("topology", "FAIL", "cannot be looked at without the compiled core", compiled.REMEDY)
        return
    from pystorm_source.cli.topology_argument import plan_here
    from pystorm_source.errors import TopologyError, UsageError
    from pystorm_source.plan import check_meetings, lint
    from pystorm_source.plan.picture import counted

    try:
        plan = plan_here(reference, environment)
    except UsageError as error:
        yield Finding("topology", "FAIL", str(error))
        return
    tasks = sum(len(component.tasks) for component in plan.components)
    found = f"{plan.name}: {counted(len(plan.components), 'component')}, {counted(tasks, 'task')}"
    yield Finding("topology", "ok", found)
    try:
        check_meetings(plan)
    except TopologyError as error:
        yield Finding("spouts", "FAIL", str(error))
    yield from _rows_of(plan)
    yield from _processes_of(plan)
    for each in lint(plan):
        yield Finding(each.code, "warn", f"{each.component}: {each.meaning}", each.remedy)


def _rows_of(plan: "Plan") -> Iterator[Finding]:
    """Finds what Spark refuses about the topology, or refuses without an option of the reader."""
    streams = {f"{component.name}.{stream.name}": stream for component, stream in plan.open_streams}
    if not streams:
        remedy = "give the last bolt `outputs`, such as outputs = ['written long']; a stream need not emit"
        yield Finding("open stream", "FAIL", "no stream leaves this topology, so it has no rows for Spark", remedy)
    elif len(streams) > 1:
        # Dead letters are first, like spouts, but are rarely the wanted stream.
        meant = min(streams, key=lambda name: streams[name].name.startswith("__"))
        remedy = f"on the reader, option stream={meant}, or streams=all"
        yield Finding("open streams", "warn", f"{', '.join(streams)}: the reader must name one", remedy)
    yield from _types_that_spark_has_not(streams)
    for name, stream in streams.items():
        untyped = [field for field, ddl in zip(stream.fields, stream.types, strict=True) if ddl is None]
        if untyped:
            declared = schema_text(zip(stream.fields, stream.types, strict=True))
            remedy = f".schema('{declared}') on the reader with the types that fit, or types in `outputs`"
            yield Finding("types", "warn", f"{name}: {', '.join(untyped)} without a type", remedy)
    for spout in plan.spouts:
        if not spout.is_partitioned and not spout.cls._pystorm_has_notes:  # a stream of such a spout needs a journal
            remedy = "on the reader, option journal.path or delivery.guarantee=best-effort; or write a PartitionedSpout"
            found = f"{spout.name}: {spout.cls.__name__} has no offsets: the tuples of a failed task are lost"
            yield Finding("delivery", "warn", found, remedy)


def _processes_of(plan: "Plan") -> Iterator[Finding]:
    """Finds Spark tasks with more child processes than this machine has cores."""
    processes = sum(len(component.groups) for component in plan.components)
    cores = os.cpu_count() or 1
    if processes > cores:
        placed = ", ".join(f"{each.name!r} has {len(each.groups)}" for each in plan.components if each.groups)
        found = f"bolts of a task have {processes} processes ({placed}), and this machine {cores} cores"
        remedy = f"on executors with as many cores, spark.task.cpus={processes}; else lower `processes`"
        yield Finding("processes", "warn", found, remedy)


def _types_that_spark_has_not(streams: Mapping[str, Any]) -> Iterator[Finding]:
    """Finds types that Arrow has, but this version of Spark does not."""
    try:
        from pystorm_source.spark.ddl import parse_type
    except ImportError:  # pyspark is missing, which is a separate finding
        return
    from pystorm_source.errors import SchemaError

    for name, stream in streams.items():
        for field, ddl in zip(stream.fields, stream.types, strict=True):
            try:
                if ddl is not None:
                    parse_type(ddl, f"field {field!r} of {name}")
            except SchemaError as error:
                yield Finding("types", "FAIL", str(error))


def ask(executable: str, path: str = "") -> dict[str, Any]:
    """Returns the answer of ``spark/probe.py`` when ``executable`` runs it; a dict with only ``error`` if it cannot.

    ``path`` goes before ``PYTHONPATH``.
    """
    inherited = os.environ.get("PYTHONPATH")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [path, inherited]))}
    try:
        done = subprocess.run(
            [executable, PROBE], capture_output=True, text=True, timeout=PROBE_TIMEOUT_SECONDS, env=environment
        )
        answer = json.loads(done.stdout.strip().splitlines()[-1]) if done.returncode == 0 else None
    except (OSError, subprocess.TimeoutExpired, ValueError, IndexError) as error:
        return {"error": f"{type(error).__name__}: {error}"}
    if not isinstance(answer, dict):
        return {"error": (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]}
    return answer


def _spark_path() -> str:
    """Returns the path that gives Spark's Python processes pyspark, no matter what they run."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.origin:
        return ""
    return os.pathsep.join(map(str, sorted((Path(spec.origin).parent / "python" / "lib").glob("*.zip"))))


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    found = f"{version} ({sys.executable})"
    if sys.version_info < TRIED_PYTHONS[0]:
        return Finding("python", "FAIL", found, "use Python 3.11 to 3.14")
    if sys.version_info[:2] not in TRIED_PYTHONS:
        return Finding("python", "warn", found, "not tried with this version: 3.11 to 3.14 are")
    return Finding("python", "ok", found)


def _core() -> Finding:
    complaint = compiled.complaint()
    if complaint:
        return Finding("compiled core", "FAIL", complaint, compiled.REMEDY)
    from cython_core import build_info

    if build_info.VERSION != __version__:
        found = f"compiled for version {build_info.VERSION}, the package is {__version__}"
        return Finding("compiled core", "FAIL", found, compiled.REMEDY)
    if compiled.is_stale():
        return Finding("compiled core", "warn", "older than its sources", "make build")
    if build_info.DEBUG:
        return Finding("compiled core", "warn", f"{build_info.VERSION}, a debug build: slow", "make build")
    return Finding("compiled core", "ok", build_info.VERSION)


def _pyarrow(here: dict[str, Any]) -> Finding:
    if not here.get("pyarrow"):
        found = here.get("pyarrow_error") or here.get("error") or "missing"
        return Finding("pyarrow", "FAIL", found, "pip install 'pyarrow>=15'")
    return Finding("pyarrow", "ok", here["pyarrow"])


def _pyspark(here: dict[str, Any]) -> Iterator[Finding]:
    if not here.get("pyspark"):
        found = here.get("pyspark_error") or here.get("error") or "missing"
        yield Finding("pyspark", "FAIL", found, "pip install 'pyspark>=4.0'")
        return
    if int(here["pyspark"].split(".")[0]) < 4:
        yield Finding("pyspark", "FAIL", f"{here['pyspark']} has no Python data sources", "pip install 'pyspark>=4.0'")
        return
    yield Finding("pyspark", "ok", here["pyspark"])
    if here["admission_control"]:
        yield Finding("admission control", "ok", "Spark hands read limits to the source")
    else:
        found = "this Spark has none for Python sources: the source bounds micro-batches itself, see docs/ADMISSION.md"
        yield Finding("admission control", "warn", found, "pip install 'pyspark>=4.2' if you can choose")


def _java() -> Finding:
    java = find_java()
    if java is None:
        return Finding("java", "FAIL", f"none from version {OLDEST} on that this Spark runs on", advice())
    found = f"{java.version} through {java.found} ({start_home(java)})"
    if java.major not in supported():
        names = ", ".join(map(str, supported()))
        return Finding("java", "warn", found, f"Spark names {names} as supported: use one of them")
    return Finding("java", "ok", found)


def _spark_processes(here: dict[str, Any]) -> Iterator[Finding]:
    """Checks the Python of Spark's own processes, and whether they find this source."""
    runs, answer, started = "PYSPARK_PYTHON", here, sys.executable  # this package sets it if nothing is set
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        chosen = os.environ.get(name)
        if name == "PYSPARK_DRIVER_PYTHON" and not chosen:
            continue  # then PYSPARK_PYTHON applies to everything
        program = shutil.which(chosen or "python3")
        same = program == sys.executable
        other = here if same else ask(program, _spark_path()) if program else {"error": "not on PATH"}
        wrong = _misfit(other, here)
        if chosen:
            runs, answer, started = name, other, chosen
        remedy = f"export {name}={sys.executable}"
        if not wrong:
            yield Finding(name, "ok", f"{program}" if chosen else f"not set: Spark runs {program}")
        elif chosen:
            yield Finding(name, "FAIL", f"{chosen}: {wrong}", remedy)
        else:
            remedy += ", or call pystorm_source.environment.prepare_spark() before Spark starts"
            yield Finding(name, "warn", f"not set: Spark runs {program or 'python3'}: {wrong}", remedy)
    if answer.get("pyspark"):
        yield _start(started)
        yield from _lookup(answer, runs)


def _start(program: str) -> Finding:
    """Checks whether Spark's Python process starts in time, even on a busy machine."""
    took = seconds_to_start(program, _spark_path())
    if took is None:
        found, remedy = f"{program} cannot import {RUNNER}", f"see the reason: {program} -c 'import {RUNNER}'"
        return Finding("python start", "FAIL", found, remedy)
    found = f"{took:.1f} s until Spark's runner is there; Spark waits {SPARK_WAITS_SECONDS} s"
    if took < SLOW_SECONDS:
        return Finding("python start", "ok", found)
    quick = quick_python()
    remedy = f"export PYSPARK_PYTHON={quick}" if quick not in (program, sys.executable) else "a quicker disk or machine"
    return Finding("python start", "warn", found, f'{remedy}; see "A Python that starts quickly" in docs/DEPLOY.md')


def _misfit(answer: dict[str, Any], here: dict[str, Any]) -> str:
    """Says why that interpreter cannot work for a driver that this one runs; empty if it can."""
    if "error" in answer:
        return f"runs no Python code ({answer['error']})"
    if answer["python"][:2] != list(sys.version_info[:2]):
        return "Python {}.{}, but the driver's is {}.{}".format(*answer["python"][:2], *sys.version_info[:2])
    if answer["pyarrow_error"]:
        return f"pyarrow cannot be imported there ({answer['pyarrow_error']})"
    if answer["core_error"] and not here.get("core_error"):
        return f"this package cannot be imported there ({answer['core_error']})"
    return ""


def _lookup(answer: dict[str, Any], runs: str) -> Iterator[Finding]:
    """Repeats Spark's look-up of Python data sources in the interpreter that runs it."""
    modules: dict[str, dict[str, str | None]] = answer["modules"]
    ours = modules.get("pyspark_pystorm")
    item = 'format("pystorm")'
    if ours is None:
        remedy = "install this package there, or call pystorm_source.register(spark, ...)"
        yield Finding(item, "FAIL", f"pyspark_pystorm cannot be found by the Python of {runs}", remedy)
    elif ours["error"] or ours["reason"]:
        remedy = f"repair the installation, then see the reason again: {answer['executable']} -c 'import {HOME}'"
        yield Finding(item, "FAIL", ours["error"] or ours["reason"] or "", remedy)
    else:
        yield Finding(item, "ok", "found by Spark without registering")
    for name, facts in modules.items():
        if name != "pyspark_pystorm" and facts["error"]:
            found = f"{facts['error']}; so Spark finds no Python data source at all by itself"
            remedy = f"repair or uninstall {name}, or call pystorm_source.register(spark, ...)"
            yield Finding(name, "FAIL", found, remedy)
