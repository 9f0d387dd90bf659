"""What it costs to see what runs: counts by component, their way to the driver, metrics and the page.

spout-id        rows/s of PairSpout → PairIdBolt → output through Spark with reports, the record file, a listener
                with Prometheus' metrics and lines of JSON, and the page drawn anew for every micro-batch; against
                the same query with ``feedback=off`` and no listener, in turn
spout-id-work   the same by processor time of all its processes, Spark's JVM among them: a busy machine changes
                little of it; rows a second of a processor, over the micro-batches after the first
report-bytes    of a task's report, for a spout and a bolt; the peer is the same report without its components
report-micros   to count, encode, send, receive and decode one; the same peer
progress-bytes  of the section ``topology``: a chain of 100 components, 10,000 reported ranges
page-millis     of processor time to make what the page draws: 300 records of 50 components, 1,000 partitions
notebook-millis the same as the output of a notebook, which is the whole document
page-paint      until Chromium has painted that document, of a file; what the machine does besides counts
"""

import os
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.harness import components as c
from benchmarks.harness.ladder import Settings
from benchmarks.harness.pairs import SCHEMA
from benchmarks.harness.record import Record, record
from benchmarks.harness.spark_session import spark_session
from benchmarks.rungs.through_spark import MICRO_BATCH_SECONDS, Case, Load, micro_batches
from pystorm_source.api import Topology
from pystorm_source.channel.client import RunnerClient
from pystorm_source.channel.reports.endpoint import Runner
from pystorm_source.channel.reports.server import ReportServer
from pystorm_source.channel.reports.task_report import RangeReport, decode, encode
from pystorm_source.counts.query_counts import QueryCounts
from pystorm_source.observe.page.document import document, framed
from pystorm_source.observe.page.view import View
from pystorm_source.plan import compile_plan
from pystorm_source.records.fitting import bytes_in_progress, fitting
from pystorm_source.records.record import PystormProgress, TaskProgress
from pystorm_source.worker import OutputPlan, ViewPlan, Worker
from testbed.uncontrolled import UNCONTROLLED

ASKED_SHARE = 0.98
ASKED_REPORT = 0.5  # at most twice the peer's bytes, and its microseconds
ASKED_PROGRESS_BYTES = 64 * 1024
ASKED_PAGE_MILLIS = 50.0
ASKED_PAINT_MILLIS = 1000.0
COMPONENTS, PARTITIONS = 100, 10_000
PAGE_COMPONENTS, PAGE_PARTITIONS, PAGE_RECORDS = 50, 1_000, 300
RANGE = 1_000


def run(settings: Settings) -> Iterator[Record]:
    """Measures the parts first, then the query."""
    if settings.wants("report-bytes") or settings.wants("report-micros"):
        yield from reports(settings)
    if settings.wants("progress-bytes"):
        size = [float(progress_bytes(COMPONENTS, PARTITIONS // 20 if settings.quick else PARTITIONS))]
        yield record("observe", "progress-bytes", size, "bytes", asked=ASKED_PROGRESS_BYTES, less_is_better=True)
    if settings.wants("page-millis") or settings.wants("notebook-millis"):
        yield from page_millis(settings.runs_of(15))
    if settings.wants("page-paint"):
        yield page_paint(settings.runs_of(9))
    if settings.wants("spout-id"):
        yield from through_spark(settings, "spout-id", micro_batches)
    if settings.wants("spout-id-work"):
        yield from through_spark(settings, "spout-id-work", rows_by_work)


def chain(length: int) -> type[Topology]:
    """A spout and bolts that pass its tuples on, ``length`` components in all."""
    made: dict[str, Any] = {"spout": c.PairSpout.spec()}
    before = made["spout"]
    for i in range(1, length):
        before = made[f"bolt{i}"] = c.PairIdBolt.spec(inputs=[before])
    return type("Chain", (Topology,), made)


def report_of(worker: Worker, partition: str = "0", with_components: bool = True) -> RangeReport:
    """The report of the worker's last run, as a task sends it."""
    return RangeReport.of(
        worker.last_run(),
        batch="0123456789abcdef",
        spout="spout",
        partition=partition,
        start=0,
        end=RANGE,
        attempt=0,
        offsets=RANGE,
        seconds=1.0,
        components=worker.last_components() if with_components else None,
    )


def ran(length: int) -> Worker:
    """A worker of a chain that has read one range."""
    worker = Worker(
        compile_plan(chain(length)), OutputPlan(SCHEMA, (ViewPlan(f"bolt{length - 1}", "default", (0, 1)),))
    )
    for _ in worker.run("spout", "0", 0, RANGE):
        pass
    return worker


def reports(settings: Settings) -> Iterator[Record]:
    """How long a task's report is, and how long it takes, for a spout and a bolt."""
    worker = ran(2)
    size, slim = (float(len(encode(report_of(worker, with_components=whole)))) for whole in (True, False))
    yield record(
        "observe",
        "report-bytes",
        [size],
        "bytes",
        peer="without components",
        peer_values=[slim],
        asked=ASKED_REPORT,
        less_is_better=True,
    )
    server = ReportServer("127.0.0.1", 0, b"t" * 32)
    server.start()
    client = RunnerClient(Runner(*server.address, b"t" * 32))
    times: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(settings.runs_of(9)):
        for whole, seen in times.items():
            seen.append(micros(partial(_send, client, worker, whole)))
            server.take()
    client.close()
    server.close()
    worker.stop()
    yield record(
        "observe",
        "report-micros",
        times[True],
        "µs",
        peer="without components",
        peer_values=times[False],
        asked=ASKED_REPORT,
        less_is_better=True,
    )


def _send(client: RunnerClient, worker: Worker, with_components: bool) -> None:
    client.reports.send(encode(report_of(worker, with_components=with_components)))


def micros(call: Callable[[], object], times: int = 200) -> float:
    """Processor time of one call, in microseconds."""
    began = time.process_time()
    for _ in range(times):
        call()
    return (time.process_time() - began) / times * 1e6


def topology_section(components: int, partitions: int) -> QueryCounts:
    """The counts of a query of which each range was reported."""
    worker = ran(components)
    counts = QueryCounts(worker.plan, worker.output, "0123456789abcdef")
    sent = report_of(worker)
    counts.begin(sent.batch, partitions)
    for i in range(partitions):
        counts.add(decode(encode(msgspec.structs.replace(sent, partition=f"topic-{i}")), float(i)))
    worker.stop()
    return counts


def progress_bytes(components: int, partitions: int) -> int:
    """How long the section ``topology`` of a progress is, as Spark has it: JSON in a string."""
    found = topology_section(components, partitions).topology()
    assert found is not None
    assert found.whole
    return bytes_in_progress(msgspec.to_builtins(fitting(found)))


def page_records() -> list[PystormProgress]:
    """Those that the page draws."""
    topology = topology_section(PAGE_COMPONENTS, PAGE_PARTITIONS).topology()
    return [
        PystormProgress(batch_id=i, seconds=1.0, rows=RANGE, topology=topology, tasks=TaskProgress(ranges=1))
        for i in range(PAGE_RECORDS)
    ]


def page_millis(runs: int) -> Iterator[Record]:
    """Processor time of each refresh."""
    records = page_records()
    refreshes: dict[str, Callable[[], object]] = {
        "page-millis": lambda: View.of(records).to_json(),
        "notebook-millis": lambda: framed(View.of(records), "key", 900),
    }
    for case, refresh in refreshes.items():
        millis = [micros(refresh, 5) / 1000 for _ in range(runs)]
        yield record("observe", case, millis, "ms", asked=ASKED_PAGE_MILLIS, less_is_better=True)


def page_paint(runs: int) -> Record:
    """Milliseconds from the begin of the navigation to the first picture with content."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    painted: list[float] = []
    if chromium is not None:
        from playwright.sync_api import sync_playwright

        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium refuses its sandbox to the superuser
        with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
            page = Path(folder) / "page.html"
            page.write_text(document(View.of(page_records())), encoding="utf-8")
            browser = playwright.chromium.launch(executable_path=chromium, args=sandbox)
            for _ in range(runs):
                shown = browser.new_page()
                shown.goto(page.as_uri())
                shown.wait_for_selector("body[data-drawn=yes]")
                painted.append(shown.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
                shown.close()
            browser.close()
    note = None if chromium is not None else "there is no chromium"
    return record("observe", "page-paint", painted, "ms", asked=ASKED_PAINT_MILLIS, less_is_better=True, note=note)


def _query(watched: bool) -> Callable[[Any, Load], Any]:
    def load(spark: Any, rows: Load) -> Any:
        from pystorm_source import read_stream

        config = {"benchmark.rows": rows.total, "benchmark.partitions": 2, "benchmark.batch.rows": 100_000}
        options: dict[str, Any] = UNCONTROLLED if watched else {"feedback": "off"}
        return read_stream(spark, c.PairIdOut, config=config, maxOffsetsPerTrigger=rows.step, **options)

    return load


class Watch:
    """Everything that looks at a query, as a callback of the listener."""

    def __init__(self, folder: Path):
        from pystorm_source.observe import JsonLines, Prometheus

        self._lines = JsonLines(folder / "progress.jsonl")
        self._metrics = Prometheus()
        self._records: list[PystormProgress] = []

    def __call__(self, progress: PystormProgress) -> None:
        self._lines(progress)
        self._metrics(progress)
        self._records.append(progress)
        View.of(self._records).to_json()

    def close(self) -> None:
        """Takes the metrics out of the process's registry: another one may come."""
        self._metrics.close()


def processor_seconds() -> float:
    """Of this process and of all that it has started, and these: those that have ended included, if they were waited
    for."""
    ticks, children = {}, defaultdict(list)
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            process = int(path.parent.name)
            ticks[process] = sum(map(int, fields[11:15]))
            children[int(fields[1])].append(process)
    found, mine = 0, [os.getpid()]
    while mine:
        process = mine.pop()
        found += ticks.get(process, 0)
        mine += children[process]
    return found / os.sysconf("SC_CLK_TCK")


def rows_by_work(spark: Any, case: Case, step: int, measured: int, folder: Path) -> list[float]:
    """Rows per processor second of so many micro-batches together, after one that is not counted."""
    checkpoint = tempfile.mkdtemp(prefix=case.name, dir=folder)
    frame = case.load(spark, Load(step, step * (1 + measured)))
    query = frame.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
    try:
        while query.lastProgress is None and query.isActive:
            time.sleep(0.01)
        began = processor_seconds()
        query.processAllAvailable()
        return [step * measured / (processor_seconds() - began)]
    finally:
        query.stop()


Measure = Callable[[Any, Case, int, int, Path], list[float]]


def through_spark(settings: Settings, case: str, measure: Measure) -> Iterator[Record]:
    """Rows per second with all of it on, against off."""
    from pystorm_source import PystormProgressListener

    off, on = (Case(name, _query(name == "on"), 1_000_000) for name in ("off", "on"))
    seen: dict[str, list[float]] = {"off": [], "on": []}
    with spark_session() as (spark, folder), closing(Watch(Path(tempfile.mkdtemp(dir=folder)))) as watch:
        listener = PystormProgressListener(watch)
        step = off.trial_step // 10
        if not settings.quick:
            micro_batches(spark, off, off.trial_step, 1, folder)  # warms the JVM up
            step = int(max(micro_batches(spark, off, off.trial_step, 2, folder)) * MICRO_BATCH_SECONDS) // 2 * 2
        wanted = settings.runs_of(12)
        while len(seen["on"]) < wanted:
            seen["off"] += measure(spark, off, step, 2, folder)
            spark.streams.addListener(listener)
            seen["on"] += measure(spark, on, step, 2, folder)
            spark.streams.removeListener(listener)
    yield record(
        "observe",
        case,
        seen["on"],
        "rows/s",
        peer="feedback=off",
        peer_values=seen["off"],
        asked=ASKED_SHARE,
        micro_batch_rows=step,
    )
