"""The runs that a page can show: the record files of a path, or of this user's drivers, each followed as it grows."""

import hashlib
from pathlib import Path

import msgspec

from pystorm_source.errors import OptionError
from pystorm_source.observe.page.view import View
from pystorm_source.records.question import ask
from pystorm_source.records.record import PystormProgress, TopologyProgress
from pystorm_source.records.record_file import Begin, RecordedRun, RecordFile
from pystorm_source.records.record_folder import files_in, private_folders, question_path, question_paths, runs
from pystorm_source.records.standstill import Stacks

MOST_RUNS = 50
"""The newest runs, to choose from. More: the list is too long to read. Less: the wanted run may be missing."""

NOT_ASKED = (
    "Its tasks cannot be asked: the run has ended or has no task yet, it has the option feedback=off, or its driver "
    "runs on another machine or as another user."
)


class Runs:
    """The record files of a path; the newest first.

    Args:
        path (Path | None): a record file, or a folder of them. Defaults to None: the private folders of this user's
            drivers that run on this machine.
    """

    def __init__(self, path: Path | None = None):
        self._path = path
        self._files: dict[Path, RecordFile] = {}

    def paths(self) -> dict[str, Path]:
        """Id → file, the newest first. An id is no path, so a request cannot name a file."""
        found = self._found()[::-1][:MOST_RUNS]
        return {hashlib.sha256(str(path).encode()).hexdigest()[:16]: path for path in found}

    def view(self, wanted: str = "") -> View:
        """The view of the run with that id, or of the newest run if the id is unknown. An unreadable file counts as
        empty."""
        paths = self.paths()
        self._files = {path: file for path, file in self._files.items() if path in paths.values()}
        path = paths.get(wanted) or next(iter(paths.values()), None)
        titles = {key: each.stem for key, each in paths.items()}
        if path is None:
            return View(title="pystorm source", runs=titles)
        try:
            run = self._files.setdefault(path, RecordFile(path)).read()
        except OSError:
            run = RecordedRun()
        return view_of(run, path.stem, titles)

    def stacks(self, wanted: str = "") -> str:
        """The text of what the tasks of that run do, or why they cannot be asked. Blocks for up to two seconds."""
        run = self.view(wanted).run
        sockets = [path for folder in private_folders() for path in question_paths(folder)]
        found = ask([path for path in sockets if run and path == question_path(path.parent, run)])
        return str(Stacks(runs=found)) if found else NOT_ASKED

    def _found(self) -> list[Path]:
        if self._path is None:
            found = [file for folder in private_folders() for file in files_in(folder)]
            return sorted(found, key=_changed)
        return files_in(self._path) if self._path.is_dir() else [self._path]


def view_of(run: RecordedRun, title: str, choice: dict[str, str] | None = None) -> View:
    """The view of a record file. ``title``: if it does not name its topology. ``choice``: id → title of other runs."""
    begin = run.begin or Begin(topology=title)
    records = run.records
    if not any(record.topology is not None for record in records) and begin.components:
        planned = TopologyProgress(name=begin.topology, run=begin.run, components=begin.components, edges=begin.edges)
        last = records[-1] if records else PystormProgress()
        records = [*records[:-1], msgspec.structs.replace(last, topology=planned)]
    if run.ended is not None:
        state = "ended"
    elif begin.process:
        state = "running" if runs(begin.process) else "not running"
    else:
        state = ""
    return View.of(records, title=begin.topology or title, run=begin.run, state=state, runs=choice)


def recorded(path: Path) -> RecordedRun:
    """The records of a file. Raises OptionError if it cannot be read or has no records."""
    try:
        run = RecordFile(path).read()
    except OSError as error:
        raise OptionError(
            f"FILE cannot be read ({error.strerror}): give a file of the folder in the option progress.path, or of the "
            f"private folder of a driver that runs. Given: {str(path)!r}",
            code="PYSTORM_INVALID_OPTION",
        ) from None
    if run.begin is None and not run.records:
        raise OptionError(
            f"FILE holds no records: give a file that a query wrote into the folder of progress.path, NAME-RUN.jsonl. "
            f"Given: {str(path)!r}",
            code="PYSTORM_INVALID_OPTION",
        )
    return run


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
