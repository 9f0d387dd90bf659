"""What Spark's file sink has committed."""

import json
from pathlib import Path


def committed(folder: Path) -> list[Path]:
    """The files in the sink's log below that folder; others are of attempts that were killed."""
    log = folder / "_spark_metadata"
    if not log.exists():
        return []
    compact = sorted((int(path.name.split(".")[0]), path) for path in log.iterdir() if path.name.endswith(".compact"))
    plain = sorted((int(path.name), path) for path in log.iterdir() if path.name.isdigit())
    texts = [compact[-1][1].read_text()] if compact else []
    texts += [path.read_text() for number, path in plain if not compact or number > compact[-1][0]]
    found = [json.loads(line)["path"] for text in texts for line in text.splitlines()[1:]]
    return [Path(path.removeprefix("file://")) for path in found]
