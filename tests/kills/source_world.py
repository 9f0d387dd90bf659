"""The server of a ready-made source, which is killed and started again, and who feeds it rows of known ids."""

import random
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

from tests.kills.link import Link

JOURNALED = {"batch.target.millis": 300, "maxOffsetsPerTrigger": 40, "spout.poll.seconds": 0.05}


class World:
    """``topology``: in ``source_topologies``; ``options``: of its reader. ``may_repeat``: whether its docs allow
    rows to come twice. ``variant``: what the seed has drawn.

    ``put`` returns once the server has confirmed these rows. Put again after an error, they are there once.
    """

    topology: ClassVar[str]
    is_journaled = True
    is_paused = False
    """Whether the feeder waits while the server dies."""
    quiet = 2.0
    """Seconds without a row, once all are there: afterwards no row comes again."""
    server: Any

    def __init__(self, folder: Path, chance: random.Random, held: ExitStack):
        self.folder, self.chance, self.held = folder, chance, held
        self.may_repeat = False
        self.options: dict[str, Any] = dict(JOURNALED)
        if self.is_journaled:
            self.options["journal.path"] = str(folder / "journal")
            if chance.random() < 0.5:
                self.options["journal.readers"] = 2
        self.open()

    def open(self) -> None:
        raise NotImplementedError

    def put(self, ids: Sequence[int]) -> None:
        raise NotImplementedError

    def kill(self) -> None:
        self.server.kill()

    def start(self) -> None:
        self.server.start()

    def freeze(self) -> None:
        """Nothing is lost, and nothing is answered until ``thaw``."""
        self.server.freeze()

    def thaw(self) -> None:
        self.server.thaw()

    @property
    def variant(self) -> dict[str, Any]:
        drawn = {
            key: self.options.get(key)
            for key in ("journal.readers", "http.paging", "sqs.queue", "mqtt.receive_maximum")
        }
        return {key: value for key, value in drawn.items() if value} | ({"crashes": True} if self.may_repeat else {})

    def linked(self, url: str) -> str:
        """The address of a link to a server in this process: the link dies instead of the server."""
        place, _, port = url.rpartition(":")
        self.server = Link(int(port))
        self.server.start()
        self.held.callback(self.server.close)
        return f"{place}:{self.server.port}"
