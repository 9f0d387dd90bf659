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

    topology: Annotated[str, Meta(description="The topology as package.module:Class.")] = ""
    config: Annotated[
        str,
        Meta(
            description="Configuration of the topology: a JSON object, the path of a .yaml or .json file, or one of "
            "the presets latency and throughput."
        ),
    ] = ""
    path: Annotated[str, Meta(description="The argument of load(path), for spouts that read files.")] = ""
    stream: Annotated[
        str,
        Meta(description="The open stream to read, as component or component.stream; needed if several are open."),
    ] = ""
    streams: Annotated[
        Literal["one", "all"],
        Meta(
            description="all: reads every open stream, with the columns _component and _stream and the union of their "
            "columns."
        ),
    ] = "one"
    starting_offsets: Annotated[
        str,
        Meta(
            description='Where a new query starts: earliest, latest, or JSON {"spout": {"partition": offset}}; -2 is '
            "earliest, -1 latest."
        ),
    ] = msgspec.field(name="startingOffsets", default="earliest")
    ending_offsets: Annotated[
        str,
        Meta(
            description='Where a batch read ends: latest, or JSON {"spout": {"partition": offset}}. Unset: latest. '
            "Not for streams."
        ),
    ] = msgspec.field(name="endingOffsets", default="")
    max_offsets_per_trigger: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Most offsets that a micro-batch may admit, over all partitions."),
    ] = msgspec.field(name="maxOffsetsPerTrigger", default=None)
    min_offsets_per_trigger: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Smallest backlog, in offsets, that starts a micro-batch before maxTriggerDelay has passed."),
    ] = msgspec.field(name="minOffsetsPerTrigger", default=None)
    max_trigger_delay: Annotated[
        str, Meta(description="How long minOffsetsPerTrigger may delay data: a number with ms, s, m, h or d.")
    ] = msgspec.field(name="maxTriggerDelay", default="15m")
    max_offsets_per_partition: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Most offsets that a micro-batch may admit from one spout partition."),
    ] = msgspec.field(name="maxOffsetsPerPartition", default=None)
    min_partitions: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="Wanted number of Spark partitions per micro-batch; larger ranges are split to reach it. "
            "Unset: neighbouring ranges with little work share a partition. 1: each range gets its own."
        ),
    ] = msgspec.field(name="minPartitions", default=None)
    max_records_per_partition: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Most offsets that one Spark partition reads; larger ranges are split evenly."),
    ] = msgspec.field(name="maxRecordsPerPartition", default=None)
    fail_on_data_loss: Annotated[
        bool,
        Meta(description="Whether a lost partition or offset fails the query (true) or is logged and skipped."),
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
            description="Target duration of a micro-batch in milliseconds. Ranges are sized so that their tasks "
            "finish in time; spouts without offsets are polled for that long. Unset: the trigger's interval, but at "
            "least a second; for spouts without offsets, a second."
        ),
    ] = msgspec.field(name="batch.target.millis", default=None)
    initial_rate: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="Assumed rate of a partition, in offsets per second, until a task has reported; it limits the "
            "first micro-batch. Unset: the spout's initial_rate, by default 200."
        ),
    ] = msgspec.field(name="backpressure.initialRate", default=None)
    output_batch_rows: Annotated[
        int, Meta(ge=1, le=1 << 24, description="Rows per Arrow batch that leaves the task.")
    ] = msgspec.field(name="output.batch.rows", default=32_768)
    feedback: Annotated[
        Literal["auto", "off"],
        Meta(
            description="auto: the tasks of a stream report to the driver over a separate connection, and the reports "
            "determine the size of micro-batches. off: no socket is opened, and only limits bound micro-batches."
        ),
    ] = "auto"
    feedback_host: Annotated[
        str,
        Meta(
            description="Host name or IP address where tasks reach the driver with their reports. The driver listens "
            "on it if the address is its own; 0.0.0.0: on all its addresses. Empty: loopback if the master is local; "
            "otherwise all addresses, and tasks connect to spark.driver.host."
        ),
    ] = msgspec.field(name="feedback.host", default="")
    feedback_port: Annotated[
        int, Meta(ge=0, le=65_535, description="Port on which the driver listens for reports; 0: any free port.")
    ] = msgspec.field(name="feedback.port", default=0)
    progress_path: Annotated[
        str,
        Meta(
            description="A folder on the driver where each run of the query leaves the record of its micro-batches: a "
            "file of JSON lines. Empty: a private folder for temporary files, which your next query on that "
            "machine removes once the driver has ended and the folder has not changed for a day."
        ),
    ] = msgspec.field(name="progress.path", default="")

    dead_letter_path: Annotated[
        str,
        Meta(
            description="A folder for dead letters, shared by driver and executors: each task that has some writes a "
            "file of JSON lines. Sets topology.dead.letter to stream, but dead letters do not become rows."
        ),
    ] = msgspec.field(name="topology.dead.letter.path", default="")

    dead_letter_group: Annotated[
        str,
        Meta(
            description="Name or number of the group that may read the files of dead letters, and their folder if it "
            "is new. Empty: only the user that runs the tasks."
        ),
    ] = msgspec.field(name="topology.dead.letter.group", default="")
    use: Annotated[
        str,
        Meta(
            description="A name for this use of the topology, in letters, digits, _, . and -; idempotency_key begins "
            "with it. If a query or a micro-batch uses a topology twice, each use needs a different name."
        ),
    ] = ""
    key: Annotated[
        str,
        Meta(
            description="For a sink: the columns whose values form a row's idempotency_key, separated by commas or as "
            "a JSON list. Empty: topology, query, micro-batch, partition and row number form it."
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
