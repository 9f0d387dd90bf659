"""Run by the peer's Python: ``bytewax_flows.py FLOW ITEMS`` prints ``{"items": …, "seconds": …}``, one worker.

map          TestingSource in batches of 1000 → map → sink that only counts
map-ready    the same from a source of ready lists of 1000: bytewax's best case, no call per item at the source
word-count   TestingSource of sentences in batches of 100 → flat_map → key_on → stateful_map (running counts) → sink
text         the lines of files in batches of 1000 → flat_map → count_final → sink; prints ``counts``, too
"""

import json
import sys
import time
from itertools import cycle, islice, repeat

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import TestingSource, run_main

ROW = ("some data",)


class CountingSink(DynamicSink):
    def __init__(self):
        self.items = 0

    def build(self, step_id, worker_index, worker_count):
        return CountingPartition(self)


class CountingPartition(StatelessSinkPartition):
    def __init__(self, sink):
        self.sink = sink

    def write_batch(self, items):
        self.sink.items += len(items)


class KeepingSink(CountingSink):
    def __init__(self):
        super().__init__()
        self.counts = {}

    def build(self, step_id, worker_index, worker_count):
        return KeepingPartition(self)


class KeepingPartition(CountingPartition):
    def write_batch(self, items):
        super().write_batch(items)
        self.sink.counts.update(items)


class ReadySource(DynamicSource):
    def __init__(self, items, size):
        self.items, self.size = items, size

    def build(self, step_id, worker_index, worker_count):
        return ReadyPartition(self.items // self.size, [ROW] * self.size)


class ReadyPartition(StatelessSourcePartition):
    def __init__(self, batches, batch):
        self.batches, self.batch = batches, batch

    def next_batch(self):
        if self.batches == 0:
            raise StopIteration
        self.batches -= 1
        return list(self.batch)


def identity(item):
    return item


def same(word):
    return word


def count(state, word):
    state = (state or 0) + 1
    return state, state


def map_flow(source, sink):
    flow = Dataflow("map")
    items = op.input("in", flow, source)
    op.output("out", op.map("id", items, identity), sink)
    return flow


def word_count_flow(source, sink):
    flow = Dataflow("word_count")
    words = op.flat_map("split", op.input("in", flow, source), str.split)
    counts = op.stateful_map("count", op.key_on("key", words, same), count)
    op.output("out", counts, sink)
    return flow


def text_flow(source, sink):
    flow = Dataflow("text")
    words = op.flat_map("split", op.input("in", flow, source), str.split)
    op.output("out", op.count_final("count", words, same), sink)
    return flow


def lines_of(paths):
    for path in paths:
        with open(path) as file:
            yield from file


def flow_of(name, items, sentences, sink):
    if name == "map":
        return map_flow(TestingSource(repeat(ROW, items), 1000), sink)
    if name == "map-ready":
        return map_flow(ReadySource(items, 1000), sink)
    if name == "word-count":
        return word_count_flow(TestingSource(islice(cycle(sentences), items), 100), sink)
    if name == "text":
        return text_flow(TestingSource(lines_of(sentences), 1000), sink)
    raise SystemExit(f"no such flow: {name}")


if __name__ == "__main__":
    name, items = sys.argv[1], int(sys.argv[2])
    sentences = json.load(sys.stdin) if name in ("word-count", "text") else []
    if name != "text":
        run_main(flow_of(name, min(items, 2000), sentences, CountingSink()))
    sink = KeepingSink() if name == "text" else CountingSink()
    flow = flow_of(name, items, sentences, sink)
    began = time.perf_counter()
    run_main(flow)
    answer = {"items": sink.items, "seconds": time.perf_counter() - began}
    print(json.dumps(answer | ({"counts": sink.counts} if name == "text" else {})))
