"""Kafka → groupby, in two processes → changes of the counts, as CSV, at least once."""

import os
from pathlib import Path

import pathway as pw

from benchmarks.job_programs.workers import in_workers


def worker(servers, topic, out, number, port):
    # As `pathway spawn --processes 2` starts them.
    settings = {"PATHWAY_PROCESSES": 2, "PATHWAY_PROCESS_ID": number, "PATHWAY_FIRST_PORT": port, "PATHWAY_THREADS": 1}
    os.environ.update({key: str(value) for key, value in settings.items()})
    settings = {"bootstrap.servers": servers, "group.id": out, "auto.offset.reset": "earliest"}
    visits = pw.io.kafka.read(settings, topic, format="plaintext", mode="static")
    totals = visits.groupby(pw.this.data).reduce(visitor=pw.this.data, visits=pw.reducers.count())
    pw.io.csv.write(totals, f"{out}/rows.csv")
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)


def run(servers, topic, out, work, ports, step):
    Path(out).mkdir()
    in_workers(worker, *((servers, topic, out, number, ports[0]) for number in range(2)))
