"""Ready-made configurations, named by ``.option("config", "latency")``: the YAML files in ``conf/`` of this package."""

from pathlib import Path

_FOLDER = Path(__file__).resolve().parents[1] / "conf"
_NO_PRESET = "defaults"  # the printed table of every option, including the source's, which `config` refuses


def preset_names() -> list[str]:
    """Returns ``["latency", "throughput"]``: the names that option ``config`` takes, sorted."""
    return sorted(path.stem for path in _FOLDER.glob("*.yaml") if path.stem != _NO_PRESET)


def preset_file(name: str) -> Path | None:
    """Returns the file of the preset ``name``, in any case and with blanks around it, or None for an unknown name."""
    wanted = name.strip().lower()
    return _FOLDER / f"{wanted}.yaml" if wanted in preset_names() else None
