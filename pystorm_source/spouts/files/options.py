"""Options of FilesSpout."""

import re
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from pystorm_source.errors import OptionError
from pystorm_source.options import parse
from pystorm_source.options.duration import parse_duration
from pystorm_source.spouts.blocks.options import FormatOptions

# One letter and a colon would be a drive, not a scheme.
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(/.*)", re.DOTALL)


class FilesOptions(FormatOptions, frozen=True, kw_only=True):
    """What ``FilesSpout`` reads, and how. Set by ``FilesSpout.spec``, in a config, or as options of the reader."""

    path: Annotated[str, Meta(min_length=1, description="Directory, file or glob (** crosses directories) to follow.")]
    format: Annotated[
        Literal["lines", "ndjson", "csv", "parquet"],
        Meta(
            description="lines: one field, the line. ndjson: a JSON object per line. parquet: complete files, "
            "columns by name."
        ),
    ] = "lines"
    recursive: Annotated[bool, Meta(description="Whether to follow subdirectories.")] = msgspec.field(
        name="files.recursive", default=False
    )
    gzip: Annotated[
        Literal["read", "ignore"],
        Meta(description="read: *.gz files are read once they are complete. ignore: never."),
    ] = msgspec.field(name="files.gzip", default="read")
    finished_after: Annotated[
        str,
        Meta(
            description="Time without change (ms, s, m, h, d) that finishes a file: its last line then needs no "
            "newline. Must exceed writers' pauses."
        ),
    ] = msgspec.field(name="files.finished.after", default="1h")
    identity: Annotated[
        Literal["inode", "path"],
        Meta(description="inode: renames are followed. path: for mounts without stable inodes."),
    ] = msgspec.field(name="files.identity", default="inode")

    def __post_init__(self) -> None:
        FormatOptions.__post_init__(self)
        local_path(self.path)
        parse_duration("files.finished.after", self.finished_after)

    @classmethod
    def of(cls, conf: dict[str, Any]) -> "FilesOptions":
        """Raises OptionError, with key, value and remedy."""
        return parse(cls, conf)

    @property
    def whole(self) -> bool:
        """Whether a file is read once it is whole, and never grows."""
        return self.format == "parquet"

    @property
    def finished_after_ns(self) -> int:
        return round(parse_duration("files.finished.after", self.finished_after) * 1_000_000_000)


def local_path(path: str) -> str:
    """Returns the path in this machine's file system, without ``file:``. Does not look at the file system.

    Raises OptionError for a path of another file system (``s3://…``, ``dbfs:/…``), with what to do instead.
    """
    uri = _URI.fullmatch(path)
    if uri is None:
        return path
    scheme, rest = uri[1].lower(), uri[2]
    if scheme == "file":
        slashes = len(rest) - len(rest.lstrip("/"))
        if rest.lower().startswith("//localhost/"):
            return rest[len("//localhost") :]
        if slashes != 2:
            return "/" + rest.lstrip("/")
        remedy = "a file URI names no host: mount the folder on driver and executors, and give the path of the mount"
    elif scheme == "dbfs":
        inside = "/" + rest.lstrip("/")
        mount = inside if inside.startswith("/Volumes/") else f"/dbfs{inside}"
        remedy = f"DBFS is mounted: give {mount!r}, or a folder of a volume, /Volumes/CATALOG/SCHEMA/VOLUME/..."
    else:
        remedy = (
            "mount it on driver and executors, and give the path of the mount with files.identity=path; or read it "
            "with an ObjectsSpout (s3, gs, abfss), or a file source of Spark's, such as spark.readStream.text(path)"
        )
    raise OptionError(
        f"option 'path' of a FilesSpout is a path in the file system of driver and executors, and {scheme}: is none: "
        f"{remedy}. Given: {path!r}",
        code="PYSTORM_INVALID_OPTION",
    )
