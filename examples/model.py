"""A model in the process of the task: rows that wait are scored together, in one call of the model.

Each row waits for its own score, and what the model raises fails the rows of that call alone. The call runs in a
thread: numpy, and most model runtimes, give the interpreter's lock away meanwhile.
"""

import asyncio

import numpy as np

from pystorm_source import AsyncBolt, Topology
from pystorm_source.spouts import RateSpout

MOST_ROWS = 64
FEATURES = 8


class Model:
    """Stands for what is loaded from a file, once for each task."""

    def __init__(self):
        self.weights = np.arange(FEATURES, dtype=float)
        self.calls = 0

    def predict(self, rows):
        self.calls += 1
        return np.asarray(rows) @ self.weights


class ScoreBolt(AsyncBolt):
    outputs = ["value long", "score double"]

    def initialize(self, conf, context):
        self.model = Model()
        self.waiting = []
        self.runs = None

    async def process(self, tup):
        score = asyncio.get_running_loop().create_future()
        self.waiting.append((self.features(tup), score))
        if self.runs is None or self.runs.done():
            self.runs = asyncio.create_task(self.score_waiting())
        self.emit([tup.values.value, await score])

    def features(self, tup):
        return [float(tup.values.value % (n + 1)) for n in range(FEATURES)]

    async def score_waiting(self):
        """One call of the model after the other, while rows wait."""
        await asyncio.sleep(0)  # those that start in this round come along
        while self.waiting:
            batch, self.waiting = self.waiting[:MOST_ROWS], self.waiting[MOST_ROWS:]
            try:
                scores = await asyncio.to_thread(self.model.predict, [features for features, _ in batch])
            except Exception as error:
                for _, score in batch:
                    score.set_exception(error)
                continue
            for (_, score), value in zip(batch, scores.tolist(), strict=True):
                if not score.done():  # its request was cancelled
                    score.set_result(value)

    def cleanup(self):
        self.report_metric("model.calls", self.model.calls)


class Scored(Topology):
    rows = RateSpout.spec()
    scores = ScoreBolt.spec(inputs=[rows])
