"""Loads what an option names as ``package.module:object``. The name travels to the executors, never the object."""

import importlib
from types import ModuleType
from typing import Any

from pystorm_source.errors import OptionError, said


def load_named(key: str, given: str, form: str, otherwise: str = "", dots: bool = False) -> tuple[ModuleType, Any]:
    """The module, and the object in it; None if the module has no such object.

    ``key``: of the option; ``form``: the expected form, as the error shows it: "a class as module:Class, such as …";
    ``otherwise``: a remedy besides installing the module; ``dots``: module.Class is right, too. Raises OptionError if
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
    except Exception as error:
        raise OptionError(
            f"option {key!r}: module {module_name!r} cannot be imported by this Python ({said(error)}); install it "
            f"where driver and executors run{otherwise}. Given: {given!r}",
            code="PYSTORM_IMPORT_FAILED",
        ) from error
    found: Any = module
    for part in path.split("."):
        found = getattr(found, part, None)
    return module, found
