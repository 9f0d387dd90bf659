"""A streamparse project, read without importing or running any of its code."""

from dataclasses import dataclass
from pathlib import Path

from pystorm_source.cli.migration.python_files import SKIPPED, ClassIndex, PythonFile, python_paths, read_python
from pystorm_source.cli.migration.settings import Settings, read_settings
from pystorm_source.cli.migration.topologies import TopologyClass, topologies_of
from pystorm_source.errors import OptionError

SRC = "src"


@dataclass
class Project:
    """The contents of the folder ``root``."""

    root: Path
    settings: Settings
    files: list[PythonFile]
    """Files of ``src`` and of the topologies' folder."""
    topologies: list[TopologyClass]
    data: list[Path]
    """Other files below ``src``: relative paths."""

    @property
    def unread(self) -> list[PythonFile]:
        """Files that cannot be parsed."""
        return [file for file in self.files if file.tree is None]

    @property
    def src_modules(self) -> set[str]:
        """The names that ``src`` on the path makes importable."""
        names = {file.module.split(".")[0] for file in self.files if file.path.parts[0] == SRC}
        return {name for name in names if name}


def read_project(root: Path) -> Project:
    """Reads the project in that folder. Raises OptionError if it is not a streamparse project."""
    if not root.is_dir():
        raise OptionError(
            f"DIR is the folder of a streamparse project, and this is no folder. Given: {str(root)!r}",
            code="PYSTORM_INVALID_OPTION",
        )
    settings = read_settings(root)
    folder = Path(settings.topologies)
    if not (root / folder).is_dir():
        raise OptionError(
            f"DIR is the folder of a streamparse project, which has src/, config.json and {folder.as_posix()}/ with "
            f"the topologies; the last is missing: give the folder above it. Given: {str(root)!r}",
            code="PYSTORM_INVALID_OPTION",
        )
    sources = [read_python(root, Path(SRC), path) for path in python_paths(root, Path(SRC))]
    wiring = [read_python(root, folder, path) for path in python_paths(root, folder)]
    index = ClassIndex([*sources, *wiring])
    topologies = [topology for file in wiring for topology in topologies_of(index, file)]
    return Project(root, settings, [*sources, *wiring], topologies, _data(root))


def _data(root: Path) -> list[Path]:
    found = (path.relative_to(root) for path in (root / SRC).rglob("*") if path.is_file())
    left_out = {".py", ".pyc", ".java", ".class", ".clj"}
    return sorted(path for path in found if path.suffix not in left_out and not SKIPPED & set(path.parts))
