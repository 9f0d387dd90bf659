"""Options of NatsSpout."""

import datetime
import re
from itertools import combinations
from typing import Annotated
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from pystorm_source.errors import OptionError
from pystorm_source.options import Options
from pystorm_source.options.names import distinct

_SUBJECT = r"(>|(\*|[^\s.*>]+)(\.(\*|[^\s.*>]+))*(\.>)?)"


class NatsOptions(Options, frozen=True, kw_only=True):
    """Options of NatsSpout, by the names of NATS's client."""

    further = (
        *("nats.subjects", "nats.start", "nats.user", "nats.password", "nats.token", "nats.creds", "nats.nkey"),
        *("nats.tls.ca.file", "nats.tls.cert.file", "nats.tls.key.file"),
    )

    servers: Annotated[str, Meta(description="Comma-separated servers, such as nats://host:4222 (tls:// for TLS).")] = (
        msgspec.field(name="nats.servers")
    )
    stream: Annotated[str, Meta(description="JetStream stream to read.")] = msgspec.field(name="nats.stream")
    subjects: Annotated[
        str,
        Meta(description="Comma-separated subjects or wildcards, each a partition. Empty: all."),
    ] = msgspec.field(name="nats.subjects", default="")
    start: Annotated[
        str,
        Meta(
            description="Sequence number or time (2026-01-31T12:00:00Z) where a new query starts. Empty: as "
            "startingOffsets says."
        ),
    ] = msgspec.field(name="nats.start", default="")
    user: Annotated[str | None, Meta(description="User to sign in as.")] = msgspec.field(name="nats.user", default=None)
    password: Annotated[str | None, Meta(description="Password of this user.")] = msgspec.field(
        name="nats.password", default=None
    )
    token: Annotated[str | None, Meta(description="Token to sign in with.")] = msgspec.field(
        name="nats.token", default=None
    )
    creds: Annotated[str | None, Meta(description="File with JWT and NKey (.creds), on driver and executors.")] = (
        msgspec.field(name="nats.creds", default=None)
    )
    nkey: Annotated[str | None, Meta(description="File with an NKey's seed, on driver and executors.")] = msgspec.field(
        name="nats.nkey", default=None
    )
    tls_ca_file: Annotated[str | None, Meta(description="CA certificates for the servers. Unset: the system's.")] = (
        msgspec.field(name="nats.tls.ca.file", default=None)
    )
    tls_cert_file: Annotated[str | None, Meta(description="File with the client's certificate.")] = msgspec.field(
        name="nats.tls.cert.file", default=None
    )
    tls_key_file: Annotated[str | None, Meta(description="File with its key. Unset: in the certificate's file.")] = (
        msgspec.field(name="nats.tls.key.file", default=None)
    )
    fail_on_data_loss: Annotated[
        bool, Meta(description="true: lost data fails the query. false: the loss is logged, and the query continues.")
    ] = msgspec.field(name="failOnDataLoss", default=True)

    def __post_init__(self) -> None:
        if "@" in self.servers:  # order: first, because a password may hold a comma or a slash
            raise OptionError(
                "option 'nats.servers' has a user or a token, which messages and Spark's pages would show: take it "
                f"out, and set nats.user and nats.password, or nats.token. Given: {shown(self.servers)!r}",
                code="PYSTORM_INVALID_OPTION",
            )
        wrong = next((each for each in self.addresses if not _is_server(each)), None)
        if wrong is not None or not self.addresses:
            raise OptionError(
                "option 'nats.servers' names servers by nats:// or tls:// and a host, such as nats://host:4222. "
                f"Given: {wrong or ''!r}",
                code="PYSTORM_INVALID_OPTION",
            )
        unfit = next((each for each in self.filters if not re.fullmatch(_SUBJECT, each)), None)
        if unfit is not None:
            raise OptionError(
                "option 'nats.subjects' has subjects of words with dots between them and commas between subjects; * "
                f"is a word, > the last one. Given: {unfit!r}",
                code="PYSTORM_INVALID_OPTION",
            )
        if not re.fullmatch(r"[^\s.*>/\\]+", self.stream):
            raise OptionError(
                "option 'nats.stream' is the name of one stream, which has no spaces, dots, slashes, * and >. "
                f"Given: {self.stream!r}",
                code="PYSTORM_INVALID_OPTION",
            )
        for one, other in combinations(self.filters, 2):
            if _overlap(one, other):
                raise OptionError(
                    f"option 'nats.subjects' has subjects of which a message may fit two, which would give it twice: "
                    f"take one of them out. Given: {one!r}, {other!r}",
                    code="PYSTORM_INVALID_OPTION",
                )
        if self.start and self.start_sequence is None and self.start_time is None:
            raise OptionError(
                "option 'nats.start' is a sequence such as 1000, or a time with its zone such as 2026-01-31T12:00:00Z; "
                f"for earliest and latest set startingOffsets. Given: {self.start!r}",
                code="PYSTORM_INVALID_OPTION",
            )

    @property
    def addresses(self) -> list[str]:
        """Servers of ``nats.servers``."""
        return distinct(self.servers)

    @property
    def filters(self) -> list[str]:
        """Subjects of ``nats.subjects``."""
        return distinct(self.subjects)

    @property
    def start_sequence(self) -> int | None:
        """The sequence in ``nats.start``; None if it is something else."""
        return int(self.start) if re.fullmatch(r"\d{1,18}", self.start) else None

    @property
    def start_time(self) -> datetime.datetime | None:
        """The time in ``nats.start``; None if it is something else, or lacks a zone."""
        try:
            found = datetime.datetime.fromisoformat(self.start)
        except ValueError:
            return None
        return found if found.tzinfo is not None else None


def _is_server(address: str) -> bool:
    # Not ws:// and wss://, which the client knows, too: whether a server has TLS is checked for these two only.
    try:
        found = urlsplit(address)
        return address.startswith(("nats://", "tls://")) and bool(found.hostname) and found.port != 0
    except ValueError:
        return False


def shown(address: str) -> str:
    """Servers' addresses for a message: without users, passwords and tokens; the last one of several."""
    scheme, mark, rest = address.partition("://")
    return scheme + mark + rest.rpartition("@")[2] if mark else address.rpartition("@")[2]


def _overlap(one: str, other: str) -> bool:
    """Whether a subject fits both."""
    left, right = one.split("."), other.split(".")
    for a, b in zip(left, right, strict=False):
        if ">" in (a, b):
            return True
        if a != b and "*" not in (a, b):
            return False
    return len(left) == len(right)
