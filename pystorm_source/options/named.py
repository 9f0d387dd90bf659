"""Loads what an option names as ``package.module:object``. The name travels to the executors, never the object."""

import importlib
from types import ModuleType
from typing import Any

from pystorm_source.errors import OptionError, cut, said
from pystorm_source.errors.user_frames import LONGEST_LINE, trim, users_line


def load_named(key: str, given: str, form: str, otherwise: str = "", dots: bool = False) -> tuple[ModuleType, Any]:
    """Returns the module and the object in it, or None for a missing object.

    ``key``: the option's key; ``form``: the expected form for the error: "a class as module:Class, such as …";
    ``otherwise``: a remedy besides installing the module; ``dots``: module.Class is valid, too. Raises OptionError if
    the text has another form, or the import raises anything.
    """
    module_name, colon, path = given.partition(":")
    if dots and not colon:
        module_name, _, path = given.rpartition(".")
    is_file = module_name.endswith(".py") or "/" in module_name
    if is_file or not all(part.isidentifier() for part in (*module_name.split("."), *path.split("."))):
        hint = ", not the name of a file" if is_file else ""
        raise OptionError(f"option {key!r} is {form}{hint}. Given: {given!r}", code="PYSTORM_INVALID_OPTION")
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        raise not_imported(f"option {key!r}: module {module_name!r}", module_name, error, otherwise, given) from trim(
            error
        )
    found: Any = module
    for part in path.split("."):
        found = getattr(found, part, None)
    return module, found


def not_imported(what: str, module: str, error: BaseException, otherwise: str, given: str) -> OptionError:
    """Builds the error for a module that is missing, needs a missing package, or raises.

    ``what``: names the module and where its name comes from; ``otherwise``: a remedy besides installing it.
    """
    if isinstance(error, ModuleNotFoundError) and error.name and f"{module}.".startswith(f"{error.name}."):
        return OptionError(
            f"{what} cannot be imported by this Python ({said(error)}); install it where driver and executors run"
            f"{otherwise}. Given: {given!r}",
            code="PYSTORM_NAME_NOT_FOUND",
        )
    line = line_of(error)
    if isinstance(error, ModuleNotFoundError) and error.name:
        return OptionError(
            f"{what} cannot be imported: it needs {error.name!r}, which this Python does not have. {line}. Install the "
            f"package, or add your module to PYTHONPATH, on driver and executors. Given: {given!r}",
            code="PYSTORM_PACKAGE_MISSING",
        )
    return OptionError(
        f"{what} cannot be imported: it raises {said(error).replace('Given: ', 'given: ')}. {line}. Correct that line. "
        f"Given: {given!r}",
        code="PYSTORM_IMPORT_FAILED",
    )


def line_of(error: BaseException) -> str:
    """Returns the user's line that raised or is not Python: ``File "/job/words.py", line 3, in <module>: 1 / 0``."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        source = f": {cut(error.text.strip(), LONGEST_LINE)}" if error.text else ""
        return f'File "{error.filename}", line {error.lineno}{source}'
    return users_line(error) or "No line of a module of yours raised it"
