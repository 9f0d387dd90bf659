"""The ``config`` in the `spec` of a ready-made component, for options that are also named parameters."""

from collections.abc import Mapping
from typing import Any


def spec_config(
    own: Mapping[str, Any] | None, config: Mapping[str, Any] | None, given: Mapping[str, Any]
) -> dict[str, Any]:
    """``config``, or the class's ``own`` if that is None; values of ``given`` that are not None win."""
    chosen = own if config is None else config
    return {**(chosen or {}), **{key: value for key, value in given.items() if value is not None}}
