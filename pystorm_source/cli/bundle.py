"""``pystorm-source bundle``: one archive about a query, for a request for support."""

import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from pystorm_source.cli.check import findings
from pystorm_source.cli.topology_argument import usage_errors
from pystorm_source.errors import OptionError
from pystorm_source.errors.known_secrets import remember, without_secrets
from pystorm_source.errors.redaction import redacted
from pystorm_source.observe.page.document import document
from pystorm_source.observe.page.runs import Runs, view_of
from pystorm_source.records.progress_table import as_text
from pystorm_source.records.record_file import RecordedRun, last_lines
from pystorm_source.records.record_folder import files_in, private_folders
from pystorm_source.version import __version__

VARIABLES = ("JAVA_HOME", "PYSPARK_", "PYSTORM_", "PYTHON", "SPARK_", "TMPDIR", "VIRTUAL_ENV")
"""Prefixes of the environment variables that change how a query runs. Others are not read."""

ABOUT = """\
About a query of pystorm-source {version}: {stem}

records.jsonl      what each micro-batch did: counts, latencies, admission, errors with their texts and source lines
progress.txt       the last micro-batch in a few lines
plan.txt           the components and their edges
page.html          the page of the run: open it in a browser
stacks.txt         what the tasks did meanwhile, or why they could not be asked
check.json         what `pystorm-source check` found: versions of Python, Java, Spark and this package
environment.json   variables that change how a query runs
options.yaml       the query's options, and the files given by --config

Values of options whose names mark a secret, passwords in URIs and `password=…` read (redacted). Texts of errors and
stacks may quote values of your rows, and paths name your folders: look into the files before you send them.
"""


def bundle(
    query: Annotated[
        str,
        typer.Argument(
            metavar="[QUERY]",
            help="A topology's name, the first characters of a run's or query's id, a record file, or a folder of "
            "them. Default: the query on this machine that wrote a record last.",
        ),
    ] = "",
    config: Annotated[
        list[Path] | None,
        typer.Option(
            "--config", metavar="FILE", help="Also pack this file of the query's options, without its secrets."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="The archive. Default: NAME-RUN.zip in the working folder."),
    ] = None,
) -> None:
    """Pack one archive for a support request: records, progress, plan, versions, options, stacks.

    It reads what `ui` and `check` read, changes nothing, and prints the archive's path. Secrets are left out; still,
    check the archive before you send it.
    """
    with usage_errors():
        options = _options(config or [])
        path = _file_of(query)
        target = output or Path(f"{path.stem}.zip")
        contents = {name: text.encode() for name, text in _texts(path, options)}
        try:
            # Only this user may read it, because it describes rows.
            handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, content in contents.items():
                    archive.writestr(f"{path.stem}/{name}", content)
        except OSError as error:
            raise OptionError(
                f"--output cannot be written ({error.strerror}): give a file in a folder that is there and writable. "
                f"Given: {str(target)!r}",
                code="PYSTORM_NOT_WRITABLE",
            ) from None
    typer.echo(target)


def _texts(path: Path, options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Name → text of each file. Blocking: it asks tasks for two seconds, and starts interpreters to inspect them."""
    remember(options)
    remember(os.environ)
    lines = [_clean(json.loads(line)) for line in _lines(path)]
    run = RecordedRun()
    for line in lines:
        run.take(json.dumps(line).encode())
    yield "README.txt", ABOUT.format(version=__version__, stem=path.stem)
    yield "records.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines)
    yield "progress.txt", as_text(run.records[-1]) + "\n" if run.records else "no micro-batch has ended yet\n"
    yield "plan.txt", _plan(run)
    yield "page.html", document(view_of(run, path.stem))
    yield "stacks.txt", without_secrets(_stacks(path)) + "\n"
    yield "check.json", _as_json([finding._asdict() for finding in findings()])
    yield (
        "environment.json",
        _as_json({key: os.environ[key] for key in sorted(os.environ) if key.startswith(VARIABLES)}),
    )
    yield "options.yaml", _options_page(run, options)


def _as_json(value: Any) -> str:
    return json.dumps(_clean(value), indent=1) + "\n"


def _clean(value: Any, key: str = "") -> Any:
    """Removes secrets: values under secret keys, secrets within texts, and secret values of the given options."""
    if isinstance(value, Mapping):
        return {inner: _clean(each, str(inner)) for inner, each in value.items()}
    if isinstance(value, list):
        return [_clean(each, key) for each in value]
    return without_secrets(redacted(key, value)) if isinstance(value, str) else redacted(key, value)


def _lines(path: Path) -> list[bytes]:
    """Returns the complete lines of a record file; skips any that were cut off. Raises OptionError."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise OptionError(
            f"the record file cannot be read ({error.strerror}): run this as the user of the driver. Given: "
            f"{str(path)!r}",
            code="PYSTORM_INVALID_OPTION",
        ) from None
    found = []
    for line in lines:
        try:
            json.loads(line)
        except (ValueError, RecursionError):
            continue
        found.append(line)
    return found


def _plan(run: RecordedRun) -> str:
    begin = run.begin
    if begin is None:
        return "the record file has lost its first line\n"
    components = [f"{each.kind:5}  {each.name}" for each in begin.components]
    edges = [
        f"{each.source}.{each.stream} -> {each.target or 'Spark'}  {each.grouping}".rstrip() for each in begin.edges
    ]
    return "\n".join([f"topology {begin.topology}, run {begin.run}", *components, *edges, ""])


NO_OPTIONS = """\
# The records name no options of the query: none was given, or its file has lost its first line. Name the file that the
# query is started with: pystorm-source bundle --config FILE
"""


def _options_page(run: RecordedRun, files: Mapping[str, Any]) -> str:
    """Prints the options from the query's records under ``query``, and each file under its name."""
    given = run.begin.options if run.begin is not None else {}
    known = {"query": given} if given else {}
    text = "" if given or files else NO_OPTIONS
    return text + str(yaml.safe_dump(_clean({**files, **known}), sort_keys=True))


def _stacks(path: Path) -> str:
    runs = Runs(path)
    return runs.stacks(next(iter(runs.paths())))


def _options(files: list[Path]) -> dict[str, Any]:
    """File → what it holds. Raises OptionError for a file that is no YAML or JSON."""
    found = {}
    for file in files:
        try:
            found[file.name] = yaml.safe_load(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise OptionError(
                f"--config takes a file of options as YAML or JSON, such as that of the option config "
                f"({type(error).__name__}). Given: {str(file)!r}",
                code="PYSTORM_INVALID_OPTION",
            ) from None
    return found


def _file_of(query: str) -> Path:
    """Returns the record file meant; of several, the newest. Raises OptionError if no file matches."""
    asked = Path(query)
    if query and asked.is_file():
        return asked
    is_folder = bool(query) and asked.is_dir()
    folders = [asked] if is_folder else private_folders()
    files = [file for folder in folders for file in files_in(folder)]
    if query and not is_folder:
        files = [file for file in files if _is_of(file, query)]
    if not files:
        raise OptionError(
            "QUERY names no query of this user's drivers on this machine: give the name of a topology, the beginning "
            "of a run's or query's id, or a file or folder of the option progress.path. Given: "
            f"{query or 'no query has written records here'!r}",
            code="PYSTORM_INVALID_OPTION",
        )
    return max(files, key=lambda file: file.stat().st_mtime_ns)


def _is_of(file: Path, query: str) -> bool:
    try:
        run = last_lines(file)
    except OSError:
        return False
    names = [run.begin.topology, run.begin.run] if run.begin else []
    ids = [str(record.query_id) for record in run.records]
    return query in names or any(each.startswith(query) for each in [*names[1:], *ids, file.stem] if len(query) >= 4)
