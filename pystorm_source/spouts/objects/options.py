"""Options of ObjectsSpout."""

import os
import re
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from pystorm_source.errors import OptionError
from pystorm_source.errors.redaction import without_credentials
from pystorm_source.options.duration import parse_duration
from pystorm_source.spouts.blocks.options import FormatOptions
from pystorm_source.spouts.glob_names import compiled

_SCHEMES = ("s3", "s3a", "gs", "az", "azure", "adl", "abfs", "abfss", "file")
_BUCKETS = ("s3", "s3a", "gs")
"""Schemes whose URLs begin with a bucket. Others may have a container before an @."""

_HAS_KEYS = re.compile(r"[^/]*@|[^/]*:.*@", re.DOTALL)
"""Of what is behind the scheme of these: no bucket has a colon, and a key that is not escaped may have a slash."""


class ObjectsOptions(FormatOptions, frozen=True, kw_only=True):
    """What ``ObjectsSpout`` reads, and how. Set by ``ObjectsSpout.spec``, in a config, or as options of the reader."""

    further = (
        *FormatOptions.further,
        *("pathGlobFilter", "objects.recursive", "objects.incremental", "objects.overwritten", "objects.max.age"),
        *("objects.config.*", "objects.client.*"),
    )

    path: Annotated[
        str,
        Meta(
            min_length=1,
            description="Prefix to read: s3://bucket/prefix, gs://, abfss://, az://, file://, or an absolute path.",
        ),
    ]
    format: Annotated[
        Literal["lines", "ndjson", "csv", "parquet", "avro"],
        Meta(description="As for FilesSpout, or avro: container files with their schema."),
    ] = "lines"
    glob: Annotated[
        str,
        Meta(description="Only objects whose name, without folders, matches this pattern, such as *.json."),
    ] = msgspec.field(name="pathGlobFilter", default="")
    recursive: Annotated[bool, Meta(description="Whether to read folders below the prefix.")] = msgspec.field(
        name="objects.recursive", default=True
    )
    incremental: Annotated[
        Literal["auto", "true", "false"],
        Meta(
            description="true: lists only names after the greatest known one, so it never reads new objects with "
            "smaller names. false: lists all names. auto: lists greater names at once, all names now and then."
        ),
    ] = msgspec.field(name="objects.incremental", default="auto")
    overwritten: Annotated[
        Literal["ignore", "read"],
        Meta(description="read: objects that are overwritten after planning count as new. ignore: they do not."),
    ] = msgspec.field(name="objects.overwritten", default="ignore")
    max_age: Annotated[
        str,
        Meta(
            description="Objects this much older (ms, s, m, h, d) than the newest known one are forgotten and, if "
            "new, never read. Empty: none."
        ),
    ] = msgspec.field(name="objects.max.age", default="")
    config: Annotated[
        dict[str, str] | None,
        Meta(description="Settings of the store, by obstore's names: objects.config.region."),
    ] = msgspec.field(name="objects.config.*", default=None)
    client: Annotated[
        dict[str, str] | None,
        Meta(description="Settings of its HTTP client: objects.client.allow_http."),
    ] = msgspec.field(name="objects.client.*", default=None)

    def __post_init__(self) -> None:
        FormatOptions.__post_init__(self)
        scheme, separator, _ = self.path.partition("://")
        if (separator and scheme.lower() not in _SCHEMES) or (not separator and not os.path.isabs(self.path)):
            raise OptionError(
                "option 'path' of an ObjectsSpout is an absolute path or one of "
                f"{', '.join(f'{each}://' for each in _SCHEMES)}. Given: {without_credentials(self.path)!r}",
                code="PYSTORM_INVALID_OPTION",
            )
        if self.is_local and not os.path.isabs(local_folder(self.path)):
            raise OptionError(
                "option 'path' of an ObjectsSpout is file:// and an absolute path: a file URI names no host. Mount "
                f"the folder on driver and executors, and give the path of the mount. Given: "
                f"{without_credentials(self.path)!r}",
                code="PYSTORM_INVALID_OPTION",
            )
        if scheme.lower() in _BUCKETS and _HAS_KEYS.match(self.path, len(scheme) + 3):
            raise OptionError(
                "option 'path' of an ObjectsSpout has no keys in it: set objects.config.*, or let the environment have "
                f"them. Given: {scheme + separator + self.path.rpartition('@')[2]!r}",
                code="PYSTORM_INVALID_OPTION",
            )
        if self.max_age:
            parse_duration("objects.max.age", self.max_age)

    @property
    def max_age_micros(self) -> int | None:
        """None: nothing is forgotten."""
        return round(parse_duration("objects.max.age", self.max_age) * 1_000_000) if self.max_age else None

    @property
    def glob_pattern(self) -> re.Pattern[str] | None:
        """None: all names. As in Spark, ``{a,b}`` is either, and ``[^a]`` any character but that one."""
        if not self.glob:
            return None
        return compiled(self.glob)

    @property
    def is_local(self) -> bool:
        """Whether the prefix is a folder of this machine's."""
        return is_local(self.path)

    def store_of(self, url: str) -> dict[str, Any]:
        """Returns the settings for a store at this URL; ``config`` is empty for another kind of store than ``path``."""
        if is_local(url):
            return {}
        same = url.partition("://")[0].lower()[:2] == self.path.partition("://")[0].lower()[:2]
        return {"config": dict(self.config or {}) if same else {}, "client_options": _typed(self.client or {})}


def is_local(url: str) -> bool:
    """Whether a path or URL is one of this machine's."""
    return "://" not in url or url.lower().startswith("file://")


def local_folder(url: str) -> str:
    """The path of a local prefix."""
    return re.sub("^file://(localhost)?", "", url, flags=re.IGNORECASE)


def _typed(client: dict[str, str]) -> dict[str, Any]:
    """``true`` and ``false`` as obstore's client takes them."""
    words: dict[str, Any] = {"true": True, "false": False}
    return {key: words.get(str(value).lower(), value) for key, value in client.items()}
