"""Runs an agent, a program that reads logs until it is ended, until it has read all that there is."""

import signal
import subprocess
import sys
import time
from pathlib import Path


def until_idle(command, rows, done, idle_seconds):
    """``rows``: the file that it writes. It has read all lines if the file ``done`` exists and ``rows`` has not grown
    for so long."""
    with subprocess.Popen(command) as agent:
        size, since = 0, time.monotonic()
        while agent.poll() is None and not (Path(done).exists() and time.monotonic() > since + idle_seconds):
            time.sleep(0.1)
            if rows.stat().st_size != size:
                size, since = rows.stat().st_size, time.monotonic()
        agent.send_signal(signal.SIGTERM)
    if agent.returncode:
        sys.exit(1)  # the last error that is printed is the agent's
