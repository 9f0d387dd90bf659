"""A process whose calls get their permits from a Redis; prints when they were made, as JSON, one line a process::

    python -m tests.channel.leases.redis_job URL RATE SECONDS [fork]

With ``fork`` it forks in the middle, and both go on.
"""

import json
import os
import sys
import time

from pystorm_source.channel.leases.redis_lessor import redis_lessor
from pystorm_source.clock import SystemClock
from pystorm_source.limits.worker_limits import WorkerLimits
from pystorm_source.options import EngineOptions, parse
from tests.channel.leases.caller import Caller


def options_of(url, rate, **more):
    keys = {key.replace("__", "."): value for key, value in more.items()}
    given = {"topology.rate.limit": {"api": rate}, "topology.rate.limit.redis": url, **keys}
    return parse(EngineOptions, given)


def calling(options, until, each=3):
    """So many threads that call, the times of their calls, and where they get their permits."""
    limits, lessor = WorkerLimits(options, SystemClock()), redis_lessor(options)
    limits.lease_from(lessor)
    times = []
    return [Caller(limits.permits("api"), times, until) for _ in range(each)], times, lessor


def report(callers, times):
    for caller in callers:
        caller.thread.join(60)
    print(
        json.dumps({"times": times, "errors": [repr(caller.error) for caller in callers if caller.error]}), flush=True
    )


def main(url, rate, seconds, forks=""):
    options, until = options_of(url, rate), time.monotonic() + float(seconds)
    callers, times, lessor = calling(options, until)
    child = None
    if forks:
        while len(times) < 20:
            time.sleep(0.01)
        child = os.fork()
        if child == 0:
            callers, times, own = calling(options, until)
            report(callers, times)
            os._exit(0 if own is not lessor else 1)
    report(callers, times)
    if child is not None:
        _, status = os.waitpid(child, 0)
        sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main(*sys.argv[1:])
