"""Kafka → apply, in two processes of a consumer group → Parquet, at least once."""

from quixstreams import Application
from quixstreams.sinks.community.file.local import LocalFileSink

from benchmarks.job_programs.orders import FIELDS, priced
from benchmarks.job_programs.workers import in_workers


def price(value):
    row = priced(value)
    return dict(zip(FIELDS, row, strict=True)) if row else None


def worker(servers, topic, out, states, idle_seconds, commit_seconds):
    group = out.replace("/", "-")  # a part of the path of its states
    settings = {"auto_offset_reset": "earliest", "commit_interval": commit_seconds, "loglevel": "WARNING"}
    app = Application(servers, consumer_group=group, state_dir=states, **settings)
    frame = app.dataframe(app.topic(topic, value_deserializer="bytes"))
    frame = frame.apply(price).filter(lambda row: row is not None)
    frame.sink(LocalFileSink(directory=out, format="parquet"))
    app.run(timeout=idle_seconds, collect=False)


def run(servers, topic, out, work, step, idle_seconds=3, commit_seconds=5):
    # Two folders of states: Quix cannot create one folder from two processes at once.
    more = (idle_seconds, commit_seconds)
    in_workers(worker, *((servers, topic, out, f"{work}/{number}", *more) for number in range(2)))
