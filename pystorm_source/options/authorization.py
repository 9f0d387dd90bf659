"""The header Authorization, which several options may set."""

from collections.abc import Mapping

from pystorm_source.errors import OptionError


def check_one_authorization(key: str, prefix: str, headers: Mapping[str, str] | None) -> None:
    """Raises OptionError if the option ``key``, which sets the header, is set beside it in ``headers``, whose options
    begin with ``prefix``: one of them would be ignored."""
    if any(name.lower() == "authorization" for name in headers or ()):
        raise OptionError(
            f"options {key!r} and '{prefix}authorization' both set the header Authorization: set one of them. "
            "Given: both",
            code="PYSTORM_OPTIONS_CONFLICT",
        )
