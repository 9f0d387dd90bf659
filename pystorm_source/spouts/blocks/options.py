"""Options of formats, which spouts of files and of objects have."""

import codecs
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from pystorm_source.errors import OptionError
from pystorm_source.formats.csv import CsvForm
from pystorm_source.formats.lines import TextDecoder
from pystorm_source.formats.rescued import RescuedColumn, is_rescued
from pystorm_source.options import Options


class FormatOptions(Options, frozen=True, kw_only=True):
    """How the content of files or objects is read. Spouts of both have these keys."""

    further: ClassVar[tuple[str, ...]] = (
        *("files.encoding.errors", "files.delimiter", "files.null", "rescuedDataColumn"),
    )

    encoding: Annotated[str, Meta(description="Text encoding, in which a line must end with byte 0x0A.")] = (
        msgspec.field(name="files.encoding", default="utf-8")
    )
    encoding_errors: Annotated[
        Literal["replace", "strict"],
        Meta(
            description="For invalid bytes in lines and csv. replace: they become U+FFFD. strict: the line is "
            "malformed."
        ),
    ] = msgspec.field(name="files.encoding.errors", default="replace")
    malformed: Annotated[
        Literal["fail", "dead-letter", "skip"],
        Meta(
            description="For unreadable lines or Parquet rows. fail: the task fails. dead-letter: "
            "topology.dead.letter decides. skip: they are counted and logged."
        ),
    ] = msgspec.field(name="files.malformed", default="fail")
    header: Annotated[
        bool,
        Meta(description="For csv. true: a file's first line names the columns. false: columns go by position."),
    ] = msgspec.field(name="files.header", default=False)
    delimiter: Annotated[str, Meta(min_length=1, max_length=1, description="For csv: character between values.")] = (
        msgspec.field(name="files.delimiter", default=",")
    )
    null: Annotated[str, Meta(description="For csv: text that means null.")] = msgspec.field(
        name="files.null", default=""
    )
    rescued: RescuedColumn = msgspec.field(name="rescuedDataColumn", default="")
    fail_on_data_loss: Annotated[
        bool,
        Meta(description="true: lost data fails the query. false: the loss is logged, and the query continues."),
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

    def csv_form(self, format: str) -> CsvForm | None:
        """How CSV is written; None for another format."""
        if format != "csv":
            return None
        return CsvForm(TextDecoder(self.encoding, self.encoding_errors), self.header, self.delimiter, self.null)

    def rescues(self, format: str, fields: Sequence[str], types: Sequence[str | None]) -> bool:
        """Whether the last field gets what does not fit the others. Raises OptionError if it cannot."""
        if self.rescued and format == "lines":
            raise OptionError(
                "option 'rescuedDataColumn' is for formats with columns, and any text fits format 'lines': leave the "
                f"option out. Given: {self.rescued!r}",
                code="PYSTORM_OPTIONS_CONFLICT",
            )
        return is_rescued(self.rescued, fields, types)
