"""A process that gives permits; prints its port::

python -m tests.channel.leases.permits_process RATE TOKEN
"""

import sys
import threading

from pystorm_source.channel.leases.lease_server import LeaseServer
from pystorm_source.channel.reports.server import ReportServer
from pystorm_source.clock import SystemClock
from pystorm_source.options import EngineOptions, parse

if __name__ == "__main__":
    rate, token = sys.argv[1:]
    clock = SystemClock()
    leases = LeaseServer(parse(EngineOptions, {"topology.rate.limit": {"api": rate}}), clock)
    server = ReportServer("127.0.0.1", 0, token.encode(), clock=clock, leases=leases.answer)
    server.start()
    print(server.address[1], flush=True)
    threading.Event().wait()
