"""This process's open files and their limit, from Linux; zeros on other systems."""

import errno
import os
import resource


def open_files() -> int:
    """Returns how many files and sockets this process has open."""
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError as error:
        return most_open_files() if error.errno == errno.EMFILE else 0


def most_open_files() -> int:
    """Returns how many it may have open: ``ulimit -n``."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 0 if soft == resource.RLIM_INFINITY else soft
