"""A project's settings beside its Python code: environments and requirements."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pystorm_source.errors.redaction import redacted
from pystorm_source.options import EngineOptions, fields_of
from pystorm_source.options.storm_keys import STORM_KEYS
from pystorm_source.options.storm_replacements import replacement_of
from pystorm_source.types.json_values import json_of

CONFIG = "config.json"
LOG_KEYS = ("path", "file", "max_bytes", "backup_count", "level")
_REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9][\w.-]*)\s*(\[[\w\s,.-]*\])?\s*(([=!<>~]=?=?)\s*[\w.*+!-]+\s*,?\s*)*(;.*)?"
)
_THEIRS = {"streamparse", "pystorm"}


@dataclass(repr=False)  # it may hold a password
class Settings:
    """Findings about the settings. ``conf``: environment → configuration that means the same here."""

    topologies: str = "topologies"
    virtualenvs: str = "virtualenvs"
    conf: dict[str, dict[str, Any]] = field(default_factory=dict)
    dependencies: list[str] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)
    """``file`` or ``file:line``, and how its text is migrated."""


def read_settings(root: Path) -> Settings:
    """Reads the settings of the project; what cannot be read becomes a note."""
    found = Settings()
    _read_config(root, found)
    _read_requirements(root, found)
    return found


def split_config(config: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Splits a Storm configuration: keys with an effect here; other keys → what to do instead."""
    known = set(fields_of(EngineOptions))
    gone = {key: replacement_of(key) for key in config if key in STORM_KEYS - known}
    return {key: value for key, value in config.items() if key not in gone}, gone


def _read_config(root: Path, found: Settings) -> None:
    try:
        config = json_of((root / CONFIG).read_text(encoding="utf-8"))
    except FileNotFoundError:
        found.notes.append((CONFIG, "is not there: no environments"))
        return
    except json.JSONDecodeError as error:
        found.notes.append((f"{CONFIG}:{error.lineno}", f"is no JSON ({error.msg}): its environments are left out"))
        return
    except (OSError, ValueError) as error:
        found.notes.append((f"{CONFIG}:1", f"cannot be read ({error}): its environments are left out"))
        return
    if not isinstance(config, dict) or not isinstance(config.get("envs", {}), dict):
        found.notes.append((f"{CONFIG}:1", "is no object with `envs`: its environments are left out"))
        return
    found.topologies = _folder(config.get("topology_specs"), found.topologies)
    found.virtualenvs = _folder(config.get("virtualenv_specs"), found.virtualenvs)
    if "serializer" in config:
        found.notes.append((CONFIG, "serializer: without effect, no tuple is serialized between components"))
    for name, environment in config.get("envs", {}).items():
        if not isinstance(environment, dict) or not re.fullmatch(r"[\w.-]+", name):
            found.notes.append((CONFIG, f"environment {name!r}: no object, or no name of a file; left out"))
            continue
        _read_environment(found, name, environment)


def _folder(given: Any, otherwise: str) -> str:
    return given.rstrip("/") or otherwise if isinstance(given, str) and not given.startswith(("/", "..")) else otherwise


def _read_environment(found: Settings, name: str, environment: dict[str, Any]) -> None:
    options, log = environment.get("options", {}), environment.get("log", {})
    conf, gone = split_config(options if isinstance(options, dict) else {})
    log = log if isinstance(log, dict) else {}
    for key in LOG_KEYS:
        value = log.get(key, environment.get(f"log_{key}"))
        if value not in (None, ""):
            conf[f"pystorm.log.{key}"] = value.lower() if key == "level" and isinstance(value, str) else value
    where = f"{CONFIG}, environment {name}"
    for key in [key for key, value in conf.items() if redacted(key, value) != value]:
        del conf[key]
        found.notes.append((where, f"{key}: a secret, left out of conf/{name}.yaml; give it as an option in job.py"))
    found.conf[name] = conf
    if conf:
        found.notes.append((where, f"conf/{name}.yaml has {', '.join(conf)}"))
    found.notes += [(where, f"{key}: {instead}") for key, instead in gone.items()]
    others = [key for key in environment if key not in ("options", "log") and not key.startswith("log_")]
    if others:
        found.notes.append((where, f"{', '.join(others)}: without effect, Spark deploys the job (docs/DEPLOY.md)"))


def _read_requirements(root: Path, found: Settings) -> None:
    versions: dict[str, tuple[str, str]] = {}
    for path in sorted((root / found.virtualenvs).glob("*.txt")):
        where = path.relative_to(root).as_posix()
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError):
            found.notes.append((f"{where}:1", "cannot be read as text in UTF-8: left out"))
            continue
        for number, line in enumerate(lines, 1):
            _read_requirement(found, versions, f"{where}:{number}", re.sub(r"(^|\s)#.*", "", line).strip())
    found.dependencies = [requirement for requirement, _ in versions.values()]


def _read_requirement(found: Settings, versions: dict[str, tuple[str, str]], where: str, line: str) -> None:
    match = _REQUIREMENT.fullmatch(line)
    if not line or (match and match["name"].lower() in _THEIRS):
        return
    if match is None:
        # The line is not shown: an address may hold a password.
        found.notes.append((where, "QUESTION: this is no package with a version: add it to pyproject.toml by hand"))
        return
    name = re.sub(r"[-_.]+", "-", match["name"]).lower()
    earlier, at = versions.setdefault(name, (line, where))
    if earlier != line:
        found.notes.append((where, f"QUESTION: {line!r}, but {earlier!r} in {at}: pyproject.toml has the latter"))
    elif "==" in line and at == where:
        found.notes.append((where, f"{line}: kept in pyproject.toml; it must exist for Python 3.11 or newer"))
