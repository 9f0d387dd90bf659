"""What ``topology.retry.on`` says about exceptions."""

import sys
from collections.abc import Mapping


class FailureRules:
    """``table``: name of an exception → ``retry`` or ``never``.

    A bare name fits every class of that name; a dotted one fits the class of that name in the module (even if imported
    there) or below it. The most specific class of an exception that the table names decides.
    """

    def __init__(self, table: Mapping[str, str]):
        self._table = dict(table)

    def __reduce__(self) -> tuple[type["FailureRules"], tuple[dict[str, str]]]:
        return type(self), (self._table,)

    def retries(self, error: BaseException) -> bool:
        """Whether the table lets the exception be retried."""
        return bool(self._table) and self.verdict(error) == "retry"

    def verdict(self, error: BaseException) -> str | None:
        """``retry`` or ``never``; None if the table does not name the exception."""
        for kind in type(error).__mro__:
            # Order: the more specific name first.
            for name in sorted(self._table, key=len, reverse=True):
                if _names(name, kind):
                    return self._table[name]
        return None


def _names(name: str, kind: type) -> bool:
    module, _, last = name.rpartition(".")
    if not module:
        return kind.__name__ == last
    if getattr(sys.modules.get(module), last, None) is kind:
        return True
    return f"{kind.__module__}.{kind.__qualname__}" == name or (
        kind.__name__ == last and kind.__module__.startswith(f"{module}.")
    )
