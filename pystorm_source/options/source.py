"""The keys of a reader. Keys for admission have the names of Spark's Kafka source."""

import ipaddress
import re
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from pystorm_source.errors import OptionError
from pystorm_source.options.table import Options

_HOST_NAME = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?")

# In an idempotency key it is between a colon and a slash.
_USE = re.compile(r"[A-Za-z0-9_.-]{1,64}")

UNBOUNDED = 2**63 - 1
"""A ReadMaxRows of Spark that is no limit: it stands for limits without a class in Spark."""


class SourceOptions(Options, frozen=True, kw_only=True):
    """Options of ``spark.readStream.format("pystorm")`` and ``spark.read.format("pystorm")``."""

    common = (
        "topology",
        "config",
        "startingOffsets",
        "maxOffsetsPerTrigger",
        "batch.target.millis",
        "minPartitions",
        "failOnDataLoss",
        "delivery.guarantee",
    )
    takes_json = frozenset(("config", "startingOffsets", "endingOffsets", "key"))

    topology: Annotated[str, Meta(description="The topology, as package.module:Class.")] = ""
    config: Annotated[
        str,
        Meta(
            description="Further settings: a JSON object, the path of a .yaml or .json file, or the preset latency "
            "or throughput."
        ),
    ] = ""
    path: Annotated[str, Meta(description="The argument of load(path), for spouts that read files.")] = ""
    stream: Annotated[
        str,
        Meta(
            description="Stream to read, as component or component.stream. Needed if several streams have no "
            "subscriber."
        ),
    ] = ""
    streams: Annotated[
        Literal["one", "all"],
        Meta(
            description="all: every stream without a subscriber, with _component, _stream and the union of the columns."
        ),
    ] = "one"
    starting_offsets: Annotated[
        str,
        Meta(
            description='Where a new query starts: earliest, latest, or JSON {"spout": {"partition": offset}} (-2: '
            "earliest, -1: latest)."
        ),
    ] = msgspec.field(name="startingOffsets", default="earliest")
    ending_offsets: Annotated[
        str,
        Meta(description="Where a batch read ends: latest or JSON as in startingOffsets. Empty: latest."),
    ] = msgspec.field(name="endingOffsets", default="")
    max_offsets_per_trigger: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Most offsets per micro-batch, over all partitions."),
    ] = msgspec.field(name="maxOffsetsPerTrigger", default=None)
    min_offsets_per_trigger: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Fewest offsets that start a micro-batch before maxTriggerDelay has passed."),
    ] = msgspec.field(name="minOffsetsPerTrigger", default=None)
    max_trigger_delay: Annotated[
        str, Meta(description="Longest wait for minOffsetsPerTrigger, in ms, s, m, h or d.")
    ] = msgspec.field(name="maxTriggerDelay", default="15m")
    max_offsets_per_partition: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Most offsets per micro-batch from one spout partition."),
    ] = msgspec.field(name="maxOffsetsPerPartition", default=None)
    min_partitions: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="Spark partitions wanted per micro-batch. Unset: small ranges share a partition. 1: each "
            "range has its own."
        ),
    ] = msgspec.field(name="minPartitions", default=None)
    max_records_per_partition: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Most offsets per Spark partition; larger ranges are split evenly."),
    ] = msgspec.field(name="maxRecordsPerPartition", default=None)
    fail_on_data_loss: Annotated[
        bool,
        Meta(description="true: lost data fails the query. false: the loss is logged, and the query continues."),
    ] = msgspec.field(name="failOnDataLoss", default=True)
    include_metadata: Annotated[
        bool, Meta(description="Adds the columns _component, _stream, _task, _partition and _offset.")
    ] = msgspec.field(name="includeMetadata", default=False)
    delivery_guarantee: Annotated[
        Literal["exactly-once", "best-effort"],
        Meta(
            description="best-effort: spouts without offsets run without a journal, and a failed task loses its tuples."
        ),
    ] = msgspec.field(name="delivery.guarantee", default="exactly-once")
    batch_target_millis: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="Target milliseconds per micro-batch; spouts without offsets are polled for that long. "
            "Unset: the trigger's interval, at least a second; without offsets, a second."
        ),
    ] = msgspec.field(name="batch.target.millis", default=None)
    initial_rate: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="Assumed offsets per second and partition until a task reports. Unset: the spout's "
            "initial_rate, by default 200."
        ),
    ] = msgspec.field(name="backpressure.initialRate", default=None)
    output_batch_rows: Annotated[int, Meta(ge=1, le=1 << 24, description="Rows per Arrow batch of output.")] = (
        msgspec.field(name="output.batch.rows", default=32_768)
    )
    feedback: Annotated[
        Literal["auto", "off"],
        Meta(description="off: tasks do not report to the driver, and only fixed limits bound micro-batches."),
    ] = "auto"
    feedback_host: Annotated[
        str,
        Meta(
            description="Host or IP address where tasks reach the driver; if it is the driver's own, the driver "
            "listens only there. Empty: loopback for a local master, otherwise spark.driver.host."
        ),
    ] = msgspec.field(name="feedback.host", default="")
    feedback_port: Annotated[
        int, Meta(ge=0, le=65_535, description="The driver's port for reports; 0: any free port.")
    ] = msgspec.field(name="feedback.port", default=0)
    progress_path: Annotated[
        str,
        Meta(
            description="Folder on the driver for records of micro-batches. Empty: a temporary folder, deleted after "
            "an idle day."
        ),
    ] = msgspec.field(name="progress.path", default="")

    dead_letter_path: Annotated[
        str,
        Meta(
            description="Folder, shared by driver and executors, for dead letters: JSON lines instead of rows. "
            "Implies topology.dead.letter=stream."
        ),
    ] = msgspec.field(name="topology.dead.letter.path", default="")

    dead_letter_group: Annotated[
        str,
        Meta(
            description="Group, by name or number, that may read the dead letters in this folder. Empty: only the "
            "tasks' user."
        ),
    ] = msgspec.field(name="topology.dead.letter.group", default="")
    use: Annotated[
        str,
        Meta(description="Name that begins each idempotency_key. Two uses of a topology in a query need two names."),
    ] = ""
    key: Annotated[
        str,
        Meta(
            description="For a sink: columns that form idempotency_key, comma-separated or a JSON list. Empty: "
            "topology, query, micro-batch, partition and row number."
        ),
    ] = ""

    @property
    def poll_millis(self) -> int:
        """How long a micro-batch polls spouts without offsets."""
        return 1000 if self.batch_target_millis is None else self.batch_target_millis

    def __post_init__(self) -> None:
        if self.use and not _USE.fullmatch(self.use):
            raise OptionError(
                "option 'use' names a use of the topology, in up to 64 letters, digits, _, . and -. "
                f"Given: {self.use!r}",
                code="PYSTORM_INVALID_OPTION",
            )
        if "://" in self.dead_letter_path:
            raise OptionError(
                "option 'topology.dead.letter.path' is a folder of a file system that driver and executors share: name "
                f"it without scheme. Given: {self.dead_letter_path!r}",
                code="PYSTORM_INVALID_OPTION",
            )
        if "://" in self.progress_path:
            raise OptionError(
                "option 'progress.path' is a folder on a disk of the driver, which takes appended lines: name it "
                f"without scheme. Given: {self.progress_path!r}",
                code="PYSTORM_INVALID_OPTION",
            )
        if self.feedback_host and not _is_host(self.feedback_host):
            raise OptionError(
                "option 'feedback.host' is a host name or an IP address, without scheme and port, which is "
                f"feedback.port. Given: {self.feedback_host!r}",
                code="PYSTORM_INVALID_OPTION",
            )


def _is_host(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return len(text) <= 253 and _HOST_NAME.fullmatch(text) is not None
    return True
