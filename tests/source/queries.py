"""Runs a streaming DataFrame to its end and keeps what each batch held."""

from pathlib import Path


class Query:
    """A query over `frame` with a checkpoint of its own; `run` may be called again and again."""

    def __init__(self, folder: Path):
        self.checkpoint = folder / "checkpoint"
        self.batches: list[tuple[int, list]] = []
        self.progress: list = []

    def run(self, frame, **trigger):
        """Runs until it stops by itself (AvailableNow unless `trigger` says otherwise); the batches of this run."""
        before = len(self.batches)
        query = self.start(frame, **(trigger or {"availableNow": True}))
        assert query.awaitTermination(90), "the query did not end"
        assert query.exception() is None
        self.progress = query.recentProgress
        return [rows for _, rows in self.batches[before:]]

    def start(self, frame, **trigger):
        def keep(batch, number):
            self.batches.append((number, sorted(tuple(row) for row in batch.collect())))

        writer = frame.writeStream.foreachBatch(keep).option("checkpointLocation", str(self.checkpoint))
        return writer.trigger(**trigger).start()

    def follow(self, frame):
        """Runs as a query without end until it has read what is there; the batches of this run."""
        before = len(self.batches)
        query = self.start(frame, processingTime="0 seconds")
        try:
            query.processAllAvailable()
        finally:
            query.stop()
        return [rows for _, rows in self.batches[before:]]

    def forget_commit(self):
        """As if the last batch had been planned and not finished."""
        last = max(int(path.name) for path in (self.checkpoint / "commits").iterdir() if path.name.isdigit())
        for path in (self.checkpoint / "commits").glob(f"*{last}*"):
            path.unlink()

    @property
    def rows(self):
        return sorted(row for _, rows in self.batches for row in rows)
