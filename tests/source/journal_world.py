"""What tests of journaled spouts have in common: a world, a journal beside it, and checkpoints."""

import json

TOPOLOGIES = "tests.source.journal_topologies"


class Journaled:
    """A world and a journal beside it."""

    def __init__(self, folder):
        self.world = folder / "world"
        self.world.mkdir()
        self.path = folder / "journal"
        self.options_path = str(self.path)

    def messages(self, count):
        (self.world / "messages").write_text("".join(f"{n}\n" for n in range(count)))

    def options(self, topology, **options):
        named = {key.replace("__", "."): str(value) for key, value in options.items()}
        return {
            "topology": f"{TOPOLOGIES}:{topology}",
            "path": str(self.world),
            "journal.path": self.options_path,
            "batch.target.millis": "150",
            "maxOffsetsPerTrigger": "7",
            **named,
        }

    def verdicts(self):
        path = self.world / "verdicts.log"
        return [tuple(json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []

    def acked(self):
        return [tup_id for verdict, tup_id, _ in self.verdicts() if verdict == "ack"]

    def files(self, ending=""):
        return sorted(path.name for path in self.path.glob(f"*/*/*{ending}"))


def unfinished(checkpoint):
    """As if the last batch had been planned and not finished; its rows."""
    checkpoint.finished -= 1
    return checkpoint.rows.pop()


def numbers(checkpoint):
    return [row[0] for rows in checkpoint.rows for row in rows]
