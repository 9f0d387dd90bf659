"""Options of formats, which spouts of files and of objects have."""

import codecs
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from pystorm_source.errors import OptionError
from pystorm_source.options import Options


class FormatOptions(Options, frozen=True, kw_only=True):
    """How the content of files or objects is read. Spouts of both have these keys."""

    further: ClassVar[tuple[str, ...]] = ("files.encoding.errors", "files.delimiter", "files.null")

    encoding: Annotated[str, Meta(description="Text encoding; a line must end with byte 0x0A.")] = msgspec.field(
        name="files.encoding", default="utf-8"
    )
    encoding_errors: Annotated[
        Literal["replace", "strict"],
        Meta(description="lines, csv: invalid bytes. replace: they become U+FFFD. strict: the line is malformed."),
    ] = msgspec.field(name="files.encoding.errors", default="replace")
    malformed: Annotated[
        Literal["fail", "dead-letter", "skip"],
        Meta(
            description="Unreadable lines or Parquet rows. fail: the task fails. dead-letter: topology.dead.letter "
            "decides. skip: counted and logged, regardless."
        ),
    ] = msgspec.field(name="files.malformed", default="fail")
    header: Annotated[
        bool,
        Meta(description="csv. true: a file's first line names columns. false: columns by position."),
    ] = msgspec.field(name="files.header", default=False)
    delimiter: Annotated[str, Meta(min_length=1, max_length=1, description="csv: character between values.")] = (
        msgspec.field(name="files.delimiter", default=",")
    )
    null: Annotated[str, Meta(description="csv: text that stands for null.")] = msgspec.field(
        name="files.null", default=""
    )
    fail_on_data_loss: Annotated[
        bool,
        Meta(description="true: lost data fails the query. false: it is logged and skipped."),
    ] = msgspec.field(name="failOnDataLoss", default=True)

    def __post_init__(self) -> None:
        try:
            encoding = codecs.lookup(self.encoding)
            fits = "\n".encode(encoding.name) == b"\n"
        except (LookupError, ValueError):  # the latter: a NUL in the name, no text encoding
            fits = False
        if not fits:
            raise OptionError(
                f"option 'files.encoding' is a text encoding that Python knows and in which a line ends with the byte "
                f"0x0A, such as utf-8, latin-1 or cp1252. Given: {self.encoding!r}",
                code="PYSTORM_INVALID_OPTION",
            )
