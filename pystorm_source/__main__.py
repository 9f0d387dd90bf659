"""The command ``pystorm-source``; also ``python -m pystorm_source``, if scripts are not on PATH."""

import importlib
import os
import sys

INTERRUPTED = 130  # 128 + SIGINT, as shells have it
NEEDED = ("rich", "typer")  # the extra `cli`; executors do without


def main() -> None:
    """Runs the command line; ends with exit status 2 and the package to install, if one is missing."""
    try:
        _main()
    except KeyboardInterrupt:  # during the imports, which take half a second
        sys.exit(INTERRUPTED)


def _main() -> None:
    try:
        from pystorm_source.cli.command_line import run
        from pystorm_source.cli.completion import VARIABLE, complete_in_bash
        from pystorm_source.cli.main import app

        for needed in NEEDED:  # a command may import them later than here
            importlib.import_module(needed)
    except ModuleNotFoundError as error:
        if error.name not in NEEDED:
            raise
        sys.exit(_advise(error.name))
    if os.environ.get(VARIABLE) == "complete_bash":
        complete_in_bash(app)
    else:
        sys.exit(run(app))


def _advise(missing: str) -> int:
    from pystorm_source.errors.packages import installing

    needed = " and ".join(NEEDED)
    print(f"error: the command line needs {needed}: {installing('cli')}. Given: no module {missing!r}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    main()
