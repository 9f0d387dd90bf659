"""Records as lines of JSON, for log collectors."""

import os
from pathlib import Path

from pystorm_source.records.record import PystormProgress


class JsonLines:
    """Appends the record of each micro-batch to a file, as one line of JSON.

    A callback for ``PystormProgressListener``. It opens the file for each line, so logrotate may move it away at any
    time. Fields are named as in ``PystormProgress``, in camel case; fields with their default value are left out.

    Args:
        path (str | os.PathLike): the file; it is created if necessary.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from pystorm_source import PystormProgressListener
        >>> from pystorm_source.observe import JsonLines
        >>> with TemporaryDirectory() as folder:
        ...     listener = PystormProgressListener(JsonLines(Path(folder) / "progress.jsonl"))
        ...     spark.streams.addListener(listener)
        ...     spark.streams.removeListener(listener)
    """

    def __init__(self, path: str | os.PathLike[str]):
        self._path = Path(path).absolute()

    def __call__(self, record: PystormProgress) -> None:
        """Appends a line.

        Args:
            record (PystormProgress): as ``PystormProgressListener`` gives it.
        """
        with self._path.open("ab", buffering=0) as file:  # one write, so that lines of several processes do not mix
            file.write(record.to_json().encode() + b"\n")
