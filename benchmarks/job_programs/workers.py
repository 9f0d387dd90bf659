"""Starts processes of a package that has a command for that: its workers, all of them alike."""

import sys
from multiprocessing import get_context


def in_workers(function, *arguments):
    """``function`` with each of these arguments, in a process of its own. Ends this one if one fails."""
    context = get_context("spawn")
    processes = [context.Process(target=function, args=each) for each in arguments]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    if any(process.exitcode for process in processes):
        sys.exit(1)  # the last error that is printed is the worker's
