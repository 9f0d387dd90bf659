"""The arguments of ``spec``: the error for an unknown one names the one that is probably meant."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from pystorm_source.errors import ArgumentTypeError, given
from pystorm_source.errors.door import door
from pystorm_source.options.misplaced_par import remedy_of_par
from pystorm_source.options.near_key import near_key


def checked_spec(spec: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a class's ``spec``, which raises ArgumentTypeError for a keyword that it does not take."""

    @door
    @functools.wraps(spec)
    def checked(cls: type, *args: Any, **keywords: Any) -> Any:
        try:
            return spec(cls, *args, **keywords)
        except TypeError as error:
            if type(error) is TypeError and (unknown := _unknown(spec, keywords)):
                raise _refused(cls, unknown, keywords[unknown], spec) from None
            raise

    return checked


def _unknown(spec: Callable[..., Any], keywords: dict[str, Any]) -> str | None:
    """The first keyword that the function does not take."""
    parameters = inspect.signature(spec).parameters
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return None
    return next((key for key in keywords if key not in parameters), None)


def _refused(cls: type, key: str, value: Any, spec: Callable[..., Any]) -> ArgumentTypeError:
    known = [name for name in inspect.signature(spec).parameters if name != "cls"]
    if "par" in known and (remedy := remedy_of_par(key, value)):
        return ArgumentTypeError(f"{cls.__name__}.spec takes no {key!r}: {remedy}", code="PYSTORM_INVALID_ARGUMENT")
    if key == "processes":  # of a bolt's spec
        return ArgumentTypeError(
            f"{cls.__name__}.spec takes no 'processes': a spout reads its partitions in the process of the Spark task, "
            "and option 'minPartitions' gives more tasks. Only a bolt's tasks can run in processes of their own. "
            f"Given: processes={given(value)}",
            code="PYSTORM_INVALID_ARGUMENT",
        )
    near = near_key(key, known)
    hint = f"did you mean {near!r}?" if near else f"it takes {', '.join(known)}."
    return ArgumentTypeError(
        f"{cls.__name__}.spec takes no {key!r}: {hint} A key of your own goes into config={{{key!r}: ...}}. "
        f"Given: {key}={given(value)}",
        code="PYSTORM_INVALID_ARGUMENT",
    )
