"""Options of the journal of spouts without offsets."""

from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import pyarrow as pa
from msgspec import Meta

from pystorm_source.errors import OptionError
from pystorm_source.errors.redaction import without_credentials
from pystorm_source.options import Options

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem


class JournalOptions(Options, frozen=True, kw_only=True):
    """Where tuples of spouts without offsets are journaled, and when the journal is forced to disk."""

    common = ("journal.path",)
    further = ("journal.segment.bytes",)

    path: Annotated[
        str,
        Meta(
            description="Journal of spouts without offsets: an absolute path or URI (s3://, abfss://, gs://, "
            "file://) that driver and executors share. Empty: such spouts need "
            "delivery.guarantee=best-effort."
        ),
    ] = msgspec.field(name="journal.path", default="")
    fsync: Annotated[
        Literal["micro-batch", "segment", "never"],
        Meta(
            description="When a journal is forced to disk, except in object stores. segment: after each segment, "
            "too. never: a machine's crash can lose acked tuples."
        ),
    ] = msgspec.field(name="journal.fsync", default="micro-batch")
    segment_bytes: Annotated[
        int, Meta(ge=1 << 12, le=1 << 40, description="Bytes after which a journal segment is finished.")
    ] = msgspec.field(name="journal.segment.bytes", default=64 << 20)

    readers: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="Most tasks that process a journal while another one polls; rows arrive one micro-batch "
            "later. Unset: one task does both, in order."
        ),
    ] = msgspec.field(name="journal.readers", default=None)
    group: Annotated[
        str,
        Meta(
            description="Group, by name or number, that may read and write the journal, except in object stores. "
            "Empty: only its owner."
        ),
    ] = msgspec.field(name="journal.group", default="")

    def __post_init__(self) -> None:
        if not self.path:
            if self.readers is not None:
                raise OptionError(
                    "option 'journal.readers' needs option 'journal.path': the tasks read what is journaled. Set it, "
                    f"or leave journal.readers out. Given: {self.readers!r}",
                    code="PYSTORM_OPTIONS_CONFLICT",
                )
            return
        remedy = "option 'journal.path' is an absolute path, or a URI that pyarrow.fs knows"
        if "://" not in self.path:
            if not self.path.startswith("/"):
                raise OptionError(
                    f"{remedy}: driver and executors have other working folders. Given: {self.path!r}",
                    code="PYSTORM_INVALID_OPTION",
                )
            return
        if self.path.partition("://")[0].lower() not in _SCHEMES:
            raise OptionError(
                f"{remedy}: {', '.join(f'{scheme}://' for scheme in _SCHEMES)}. Given: {self.shown!r}",
                code="PYSTORM_INVALID_OPTION",
            )

    @property
    def shown(self) -> str:
        """The path for messages: without credentials."""
        return without_credentials(self.path)


_SCHEMES = ("file", "s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs", "mock")


def file_system(path: str) -> "tuple[FileSystem | None, str]":
    """The file system of a URI, None for this machine's, and the path in it. Raises OptionError."""
    if "://" not in path:
        return None, path
    from pyarrow.fs import FileSystem  # here: most tasks have no journal, and would begin 8 ms later

    try:
        found, inner = FileSystem.from_uri(path)
    except (pa.ArrowException, OSError, ValueError, TypeError) as error:
        raise OptionError(
            f"option 'journal.path' is no URI that pyarrow.fs takes ({error}): see pyarrow.fs.FileSystem.from_uri. "
            f"Given: {without_credentials(path)!r}",
            code="PYSTORM_INVALID_OPTION",
        ) from None
    return (None if found.type_name == "local" else found), inner
