"""Kafka → apply, in two processes of a consumer group → Parquet, at least once."""

from quixstreams import Application
from quixstreams.sinks.community.file.local import LocalFileSink

from benchmarks.job_programs.orders import FIELDS, priced
from benchmarks.job_programs.workers import in_workers

IDLE_SECONDS = 3


def price(value):
    row = priced(value)
    return dict(zip(FIELDS, row, strict=True)) if row else None


def worker(servers, topic, out, states):
    group = out.replace("/", "-")  # a part of the path of its states
    app = Application(servers, consumer_group=group, auto_offset_reset="earliest", loglevel="WARNING", state_dir=states)
    frame = app.dataframe(app.topic(topic, value_deserializer="bytes"))
    frame = frame.apply(price).filter(lambda row: row is not None)
    frame.sink(LocalFileSink(directory=out, format="parquet"))
    app.run(timeout=IDLE_SECONDS, collect=False)


def run(servers, topic, out, work, step):
    # Two folders of states: Quix cannot create one folder from two processes at once.
    in_workers(worker, *((servers, topic, out, f"{work}/{number}") for number in range(2)))
