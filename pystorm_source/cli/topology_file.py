"""A topology given by the path of its file, as in streamparse's projects: ``topologies/wordcount.py``."""

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

from pystorm_source.api import Topology
from pystorm_source.errors import OptionError, UsageError
from pystorm_source.errors.user_frames import trim
from pystorm_source.options.named import line_of, not_imported
from pystorm_source.plan import load_topology

STREAMPARSE = ("streamparse", "pystorm")
CONFIG = "config.json"
FORM = "a topology is PACKAGE.MODULE:TOPOLOGY, FILE.py or FILE.py:TOPOLOGY"


def load_reference(reference: str) -> type[Topology]:
    """Loads the topology ``package.module:Class`` or ``folder/file.py``; add ``:Class`` if the file has several.

    A file is imported as `sparse` does it: with the project's ``src`` and the file's own folder on ``sys.path``.
    Raises UsageError if there is no such file or class, or the import fails, for example without streamparse.
    """
    path, colon, name = reference.partition(":")
    if not path.endswith(".py"):
        try:
            return load_topology(reference)
        except OptionError as error:
            _explain_streamparse(error.__cause__, reference, Path.cwd())
            raise
    file = Path(path)
    if not file.is_file():
        raise OptionError(
            f"there is no such file: {FORM}; paths begin in {str(Path.cwd())!r}. Given: {reference!r}",
            code="PYSTORM_INVALID_OPTION",
        )
    module = _imported(file.resolve(), reference)
    topologies = _topologies(module)
    if colon:
        if name not in topologies:
            raise OptionError(
                f"{path} has no Topology {name!r}; it has: {_names(topologies)}. Given: {reference!r}",
                code="PYSTORM_NAME_NOT_FOUND",
            )
        return topologies[name]
    if len(topologies) != 1:
        remedy = "name one, such as " + f"{path}:{next(iter(topologies))}" if topologies else "it needs one"
        raise OptionError(
            f"{path} defines these topologies: {_names(topologies)}; {remedy}. Given: {reference!r}",
            code="PYSTORM_NAME_NOT_FOUND",
        )
    return next(iter(topologies.values()))


def project_of(file: Path) -> Path:
    """Returns the project's folder: the nearest one above the file with a ``config.json`` or ``src``; if there is no
    such folder, the file's own."""
    for folder in file.parents:
        if (folder / CONFIG).is_file() or (folder / "src").is_dir():
            return folder
    return file.parent


def _imported(file: Path, reference: str) -> ModuleType:
    project = project_of(file)
    # Order: src before the topologies, as in sparse; the project's own folder for imports such as `src.bolts`.
    for folder in (project, file.parent, project / "src"):
        _put_first(folder)
    try:
        if (file.parent / "__init__.py").is_file():
            return _module_of_package(file)
        return _module_alone(file)
    except (Exception, SystemExit) as error:
        _explain_streamparse(error, reference, project)
        raise not_imported(reference, file.stem, error, "", reference) from trim(error)


def _module_of_package(file: Path) -> ModuleType:
    """Imports the file by its full name, so that relative imports work."""
    names, folder = [file.stem], file.parent
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    _put_first(folder)
    return importlib.import_module(".".join(names))


def _module_alone(file: Path) -> ModuleType:
    # A topology may have the name of a module that it imports: then that module keeps the name.
    found = importlib.util.find_spec(file.stem) if file.stem.isidentifier() else None
    own = found is not None and found.origin is not None and Path(found.origin).resolve() == file
    name = file.stem if own else f"topology_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None, "a file that ends in .py has a loader"
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _put_first(folder: Path) -> None:
    if str(folder) in sys.path:
        sys.path.remove(str(folder))
    sys.path.insert(0, str(folder))


def _explain_streamparse(error: BaseException | None, reference: str, project: Path) -> None:
    """Raises UsageError if the import failed because streamparse, which needs Storm, is not installed."""
    if not isinstance(error, ModuleNotFoundError) or (error.name or "").split(".")[0] not in STREAMPARSE:
        return
    raise UsageError(
        f"No module named {error.name!r}, and none is needed. {line_of(error)}. Say `from pystorm_source import ...` "
        f"there, with the same names; or call pystorm_source.compat.install() before it, if the file cannot be "
        f"edited; `pystorm-source migrate {_shown(project)}` makes a copy of the whole project with that line changed "
        f"everywhere. Given: {reference!r}",
        code="PYSTORM_PACKAGE_MISSING",
    ) from trim(error)


def _shown(path: Path) -> str:
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def _topologies(module: ModuleType) -> dict[str, type[Topology]]:
    """Returns the topologies that the module defines; if it defines no topology, the ones it imports."""
    found = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Topology) and value.specs
    }
    return {name: value for name, value in found.items() if value.__module__ == module.__name__} or found


def _names(topologies: dict[str, type[Topology]]) -> str:
    return ", ".join(topologies) or "none"
