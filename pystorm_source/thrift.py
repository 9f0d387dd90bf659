"""The names that streamparse users import from ``.thrift``; Thrift is not used."""

from typing import Any, NoReturn

from pystorm_source.api.component_spec import GlobalStreamId
from pystorm_source.errors import NotSupportedError, given

__all__ = ["GlobalStreamId", "JavaObjectArg", "StreamInfo"]


class JavaObjectArg:
    """An argument for a component in Java. Raises NotImplementedError when it is made."""

    def __init__(self, **kwargs: Any) -> NoReturn:
        raise NotSupportedError(
            f"no Java runs here: write the component in Python. Given: JavaObjectArg({given(kwargs)})",
            code="PYSTORM_NOT_SUPPORTED",
        )


class StreamInfo:
    """Thrift's description of a stream. Raises NotImplementedError when it is made."""

    def __init__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotSupportedError(
            "no Thrift structures are made here: declare outputs = [Stream(fields=[...], name=..., direct=...)]. "
            f"Given: StreamInfo({given(args)}, {given(kwargs)})",
            code="PYSTORM_NOT_SUPPORTED",
        )
