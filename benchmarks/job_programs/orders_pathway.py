"""Kafka → a Python UDF, in two processes → CSV, at least once; Parquet needs a license."""

import os
from pathlib import Path
from typing import Any

import pathway as pw

from benchmarks.job_programs.orders import FIELDS, priced
from benchmarks.job_programs.workers import in_workers


@pw.udf(deterministic=True)
def price(value: bytes) -> tuple[int, str, str, str, int] | None:
    return priced(value)


def worker(servers, topic, out, number, port, mode, commit_millis):
    # As `pathway spawn --processes 2` starts them.
    settings = {"PATHWAY_PROCESSES": 2, "PATHWAY_PROCESS_ID": number, "PATHWAY_FIRST_PORT": port, "PATHWAY_THREADS": 1}
    os.environ.update({key: str(value) for key, value in settings.items()})
    settings = {"bootstrap.servers": servers, "group.id": out, "auto.offset.reset": "earliest"}
    orders = pw.io.kafka.read(settings, topic, format="raw", mode=mode, autocommit_duration_ms=commit_millis)
    rows = orders.select(row=price(pw.this.data)).filter(pw.this.row.is_not_none())
    columns: Any = {name: pw.this.row[number] for number, name in enumerate(FIELDS)}
    pw.io.csv.write(rows.select(**columns), f"{out}/rows.csv")
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)


def run(servers, topic, out, work, ports, step, mode="static", commit_millis=1500):
    Path(out).mkdir()
    in_workers(worker, *((servers, topic, out, number, ports[0], mode, commit_millis) for number in range(2)))
