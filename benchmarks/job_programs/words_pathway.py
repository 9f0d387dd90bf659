"""Text files → split → groupby, in two processes → CSV; Parquet needs a license."""

import os
from pathlib import Path

import pathway as pw

from benchmarks.job_programs.workers import in_workers


def worker(text, out, number, port):
    # As `pathway spawn --processes 2` starts them.
    settings = {"PATHWAY_PROCESSES": 2, "PATHWAY_PROCESS_ID": number, "PATHWAY_FIRST_PORT": port, "PATHWAY_THREADS": 1}
    os.environ.update({key: str(value) for key, value in settings.items()})
    lines = pw.io.fs.read(text, format="plaintext", mode="static")
    words = lines.select(word=pw.apply(lambda line: tuple(line.split()), pw.this.data)).flatten(pw.this.word)
    pw.io.csv.write(words.groupby(pw.this.word).reduce(pw.this.word, n=pw.reducers.count()), f"{out}/rows.csv")
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)


def run(text, out, work, ports):
    Path(out).mkdir()
    in_workers(worker, *((text, out, number, ports[0]) for number in range(2)))
