"""One run of the command line: a wrong line gets ``error: …`` and an exit status, never a traceback.

0  all is well    1  what ran or was checked failed, or the reader of a pipe has gone
2  the line is wrong                     130  Ctrl-C
"""

import errno
import os
import sys
from typing import Any

import typer

PROGRAM = "pystorm-source"
FAILED, WRONG, INTERRUPTED = 1, 2, 130  # the last: 128 + SIGINT, as shells have it
OUTPUT_ERRORS = (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EBADF)


def run(app: typer.Typer) -> int:
    """Runs the command that ``sys.argv`` names; returns its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a table has characters that an ASCII terminal lacks
            stream.reconfigure(errors="backslashreplace")
    try:
        status = app(prog_name=PROGRAM, standalone_mode=False)
        if sys.stdout is not None:  # None: the shell has closed it
            sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except typer.Abort:
        return _say("stopped by Ctrl-C", INTERRUPTED)
    except OSError as error:
        if error.errno == errno.EPIPE:
            _forget_stdout()
            return FAILED
        if error.errno not in OUTPUT_ERRORS or error.filename is not None:
            raise
        _forget_stdout()
        return _say(f"error: stdout cannot be written: {error.strerror}. Redirect it to a place with room", FAILED)
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        return _wrong(error)


def _wrong(error: Any) -> int:
    """Answers a line that typer refuses."""
    message = " ".join(error.format_message().split()).removesuffix(".").replace("Value error, ", "")
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return WRONG
    context = getattr(error, "ctx", None)
    command = context.command_path if context else PROGRAM
    given = " ".join([PROGRAM, *sys.argv[1:]])
    return _say(f"error: {message}: `{command} -h` shows arguments and flags. Given: {given}", error.exit_code)


def _say(text: str, status: int) -> int:
    typer.echo(text, err=True)
    return status


def _forget_stdout() -> None:
    """Drops stdout. Otherwise the interpreter flushes it again on exit, and complains."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
