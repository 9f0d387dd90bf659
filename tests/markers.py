"""Files by which test topologies in several processes agree on who is first."""

import os
from pathlib import Path


def is_first(marker: str | os.PathLike[str]) -> bool:
    """Whether nobody has set that marker yet; from now on it is set. Only one of several processes is told so."""
    try:
        Path(marker).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
