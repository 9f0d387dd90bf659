"""Files by which test topologies in several processes agree on which is first."""

import os
from pathlib import Path


def is_first(marker: str | os.PathLike[str]) -> bool:
    """Whether that marker was not set yet; from now on it is. Of several processes only one gets True."""
    try:
        Path(marker).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
