"""A component on trial: what a broken law is raised with."""

from collections.abc import Callable
from typing import Any, NoReturn

from pystorm_source.errors import ContractBroken, TupleFailed, UsageError
from pystorm_source.errors.user_frames import trim
from pystorm_source.testing.driven import Driven
from pystorm_source.testing.law import Law, broken, cause_of, law_of_error, own_failure, raised


class Trial:
    """One spout over a source that stands still."""

    def __init__(self, driven: Driven):
        self.driven = driven
        self._law: Law | None = None

    def judge(self, law: Law) -> None:
        """Raises ContractBroken if the spout breaks this law, or raises while it is looked at; TupleFailed if it raises
        when it is first asked or read."""
        self._law = law
        try:
            law.check(self)
        except (ContractBroken, TupleFailed, UsageError):
            raise
        except Exception as error:
            self.refuse("", "no exception", raised(error), error)

    def broken(self, place: str, expected: str, found: str) -> NoReturn:
        """Raises ContractBroken for the law that is looked at."""
        self.refuse(place, expected, found, None)

    def refuse(self, place: str, expected: str, found: str, cause: BaseException | None) -> NoReturn:
        """As ``broken``, because of this exception."""
        assert self._law is not None
        says, remedy = (law_of_error(cause) if cause is not None else None) or (self._law.says, self._law.remedy)
        own = None if cause is None else trim(cause_of(cause))
        raise broken(self.driven.cls.__name__, says, place, expected, found, remedy) from own

    def first(self, call: Callable[[], Any], place: str = "") -> Any:
        """The result of a first call: what the spout raises there, as TupleFailed, breaks no law."""
        try:
            return call()
        except Exception as error:
            if isinstance(error, ContractBroken) or law_of_error(error) is not None:
                raise
            failed = own_failure(self.driven.component.name, error, place)
            raise failed from failed.__cause__
