"""Kafka as a table of JSON → a Python UDF, in two processes → CSV, at least once; Parquet needs a license."""

import os
from pathlib import Path
from typing import Any

import pathway as pw

from benchmarks.job_programs.decoded import COLUMNS, priced
from benchmarks.job_programs.orders import FIELDS
from benchmarks.job_programs.workers import in_workers


class Order(pw.Schema):
    number: int
    customer: str
    item: str
    country: str
    currency: str
    quantity: int
    price: int
    status: str


@pw.udf(deterministic=True)
def price(
    number: int, customer: str, item: str, country: str, currency: str, quantity: int, each: int, status: str
) -> tuple[int, str, str, str, int] | None:
    return priced(number, customer, item, country, currency, quantity, each, status)


def worker(servers, topic, out, number, port):
    # As `pathway spawn --processes 2` starts them.
    settings = {"PATHWAY_PROCESSES": 2, "PATHWAY_PROCESS_ID": number, "PATHWAY_FIRST_PORT": port, "PATHWAY_THREADS": 1}
    os.environ.update({key: str(value) for key, value in settings.items()})
    settings = {"bootstrap.servers": servers, "group.id": out, "auto.offset.reset": "earliest"}
    places = {"number": "/id"}
    orders = pw.io.kafka.read(settings, topic, format="json", schema=Order, mode="static", json_field_paths=places)
    columns = [pw.this[name] for name in ("number", *COLUMNS[1:])]
    rows = orders.select(row=price(*columns)).filter(pw.this.row.is_not_none())
    parts: Any = {name: pw.this.row[place] for place, name in enumerate(FIELDS)}
    pw.io.csv.write(rows.select(**parts), f"{out}/rows.csv")
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)


def run(servers, topic, out, work, ports, step):
    Path(out).mkdir()
    in_workers(worker, *((servers, topic, out, number, ports[0]) for number in range(2)))
