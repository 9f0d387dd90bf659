"""Patterns of names: ``{a,b}`` is either, ``[^a]`` any character but that one, as in Spark's file sources."""

import fnmatch
import re

_GROUP = re.compile(r"\{([^{}]*)\}")
_CHOICE = re.compile(r"\{([^{}]*,[^{}]*)\}")


def compiled(pattern: str, shell: bool = False) -> re.Pattern[str]:
    """``shell``: as in a shell, a wildcard does not match a dot that begins a name, and braces without a comma are the
    name's own; in Spark, ``{a}`` is ``a``."""
    return re.compile(
        "|".join(
            (r"(?!\.)" if shell and not each.startswith(".") else "") + fnmatch.translate(each.replace("[^", "[!"))
            for each in _without(_CHOICE if shell else _GROUP, pattern)
        )
    )


def _without(braces: re.Pattern[str], pattern: str) -> list[str]:
    """The patterns that a pattern with braces stands for."""
    found = braces.search(pattern)
    if found is None:
        return [pattern]
    begin, end = found.span()
    return [each for part in found[1].split(",") for each in _without(braces, pattern[:begin] + part + pattern[end:])]
