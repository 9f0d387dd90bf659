"""``python -m benchmarks.job_programs``: runs the program that each line of standard input names, with its options.

Prints a JSON line for each run: ``seconds`` by the clock, and ``processor``, those of all its processes.
"""

import ctypes
import importlib
import json
import os
import sys
import time

from benchmarks.harness.processor import processor_seconds

PR_SET_CHILD_SUBREAPER = 36

if __name__ == "__main__":
    # A process whose parent ends first, such as a shell's child, stays below this one, and its time is counted.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for line in sys.stdin:
        options = json.loads(line)
        program = importlib.import_module(f"benchmarks.job_programs.{options.pop('program')}")
        before, began = processor_seconds(), time.monotonic()
        program.run(**options)
        took = {"seconds": time.monotonic() - began, "processor": processor_seconds() - before}
        print("\n" + json.dumps(took), flush=True)
    # Peers have threads, JVMs and atexit handlers that take long to end, or never do.
    os._exit(0)
