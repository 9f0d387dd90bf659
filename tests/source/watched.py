"""Topologies that are watched: one with a slow bolt, one whose workers are killed."""

import hashlib
import os
import signal
from pathlib import Path

from pystorm_source import Bolt, Topology
from tests.markers import is_first
from tests.source.topologies import NumberSpout

ROUNDS = 2_000
"""Of the slow call: half a millisecond. Fewer: what a micro-batch costs besides is more. More: the test takes long."""
DEADLY = {7, 47}
"""Numbers at which a worker dies, once in each partition."""


class Pass(Bolt):
    outputs = ["part string", "n long"]

    def process(self, tup):
        self.emit(tup.values)


class Sign(Pass):
    """Derives a key for each tuple."""

    def process(self, tup):
        hashlib.pbkdf2_hmac("sha256", str(tup.values.n).encode(), b"salt", ROUNDS)
        super().process(tup)


class Signed(Topology):
    numbers = NumberSpout.spec()
    check = Pass.spec(inputs=[numbers])
    sign = Sign.spec(inputs=[check])
    last = Pass.spec(inputs=[sign])


class Dies(Pass):
    """In the middle of a range, when it has emitted."""

    def initialize(self, conf, context):
        self.folder = Path(conf["path"])

    def process(self, tup):
        super().process(tup)
        part, n = tup.values
        if n in DEADLY and is_first(self.folder / f"{part}.{n}-died"):
            os.kill(os.getpid(), signal.SIGKILL)


class Killed(Topology):
    numbers = NumberSpout.spec()
    dies = Dies.spec(inputs=[numbers])
    last = Pass.spec(inputs=[dies])
