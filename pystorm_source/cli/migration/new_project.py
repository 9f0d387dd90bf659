"""The files of the new project."""

import json
import re
import string
from importlib import resources
from pathlib import Path

import yaml

from pystorm_source.cli.migration.changes import Changes
from pystorm_source.cli.migration.edits import edited
from pystorm_source.cli.migration.jobs import Job
from pystorm_source.cli.migration.project import SRC
from pystorm_source.cli.migration.sample_rows import spouts_as_scripts
from pystorm_source.errors import OptionError
from pystorm_source.errors.packages import EXTRAS

TOPOLOGIES = "topologies"


def new_files(changes: Changes, name: str) -> dict[str, bytes]:
    """Path in the new project → content."""
    files = _copies(changes)
    files["job.py"] = _job(changes).encode()
    files["pyproject.toml"] = _pyproject(changes, name, set(files)).encode()
    for job in changes.jobs:
        files[f"tests/test_{job.name}.py"] = _test(job).encode()
    for environment, conf in changes.project.settings.conf.items():
        text = yaml.safe_dump(conf, sort_keys=False) if conf else ""
        head = "# Keys of the engine, which have Storm's names, and of your components: docs/OPTIONS.md.\n"
        files[f"conf/{environment}.yaml"] = (head + text).encode()
    files[".gitignore"] = b"__pycache__/\n*.egg-info/\n.pytest_cache/\n.venv/\nbuild/\ncheckpoint/\njournal/\n"
    return files


def write_files(files: dict[str, bytes], folder: Path) -> tuple[list[str], list[str]]:
    """Writes files that do not exist yet. Returns the new paths, and the existing paths that stay.

    Raises OptionError if they cannot be written.
    """
    new, kept = list[str](), list[str]()
    for path, content in sorted(files.items()):
        target = folder / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                file.write(content)
        except FileExistsError:
            kept.append(path)
        except OSError as error:
            raise OptionError(
                f"a file cannot be written ({error.strerror}): give an --output where you may write. "
                f"Given: {str(target)!r}",
                code="PYSTORM_NOT_WRITABLE",
            ) from None
        else:
            new.append(path)
    return new, kept


def _copies(changes: Changes) -> dict[str, bytes]:
    project, files = changes.project, dict[str, bytes]()
    for file in project.files:
        path = file.path.as_posix()
        if file.path.parts[0] != SRC:
            path = f"{TOPOLOGIES}/{file.path.relative_to(project.settings.topologies).as_posix()}"
        original = (project.root / file.path).read_bytes()
        edits = changes.edits[file.path.as_posix()]
        files[path] = edited(file.text, edits).encode() if edits else original
    for data in project.data:
        files[data.as_posix()] = (project.root / data).read_bytes()
    files.setdefault(f"{TOPOLOGIES}/__init__.py", b"")
    return files


def _job(changes: Changes) -> str:
    jobs, schemas = "", ""
    for job in changes.jobs:
        jobs += f'    {json.dumps(job.name)}: {{\n        "topology": "{TOPOLOGIES}.{job.topology.reference}",\n'
        for option in job.options:
            jobs += f"        # {option.why}.\n" if option.why else ""
            jobs += f"        {json.dumps(option.key)}: {json.dumps(option.value)},\n"
        if any(option.key in ("journal.path", "delivery.guarantee") for option in job.options):
            jobs += "        # How long the spout is asked for tuples in each micro-batch.\n"
            jobs += '        "batch.target.millis": 1000,\n'
        jobs += "    },\n"
        schemas += f"    {json.dumps(job.name)}: {json.dumps(job.schema)},\n" if job.schema else ""
    environments = list(changes.project.settings.conf)
    return _filled(
        "job.py.in",
        jobs=jobs,
        schemas=schemas,
        usage=" NAME" if len(changes.jobs) > 1 else "",
        default=json.dumps(changes.jobs[0].name if changes.jobs else ""),
        environment=json.dumps(environments[0] if environments else ""),
    )


def _pyproject(changes: Changes, name: str, paths: set[str]) -> str:
    packages = {TOPOLOGIES}
    modules = set[str]()
    for path in (Path(each) for each in paths if each.endswith(".py")):
        if path.parts[0] == SRC and len(path.parts) > 2:
            packages |= {".".join(path.parts[1:end]) for end in range(2, len(path.parts))}
        elif path.parts[0] == SRC and path.stem != "__init__":
            modules.add(path.stem)
        elif path.parts[0] == TOPOLOGIES and len(path.parts) > 2:
            packages |= {".".join(path.parts[:end]) for end in range(2, len(path.parts))}
    kafka = EXTRAS["kafka"] if any(job.kafka for job in changes.jobs) else ()
    return _filled(
        "pyproject.toml.in",
        name=re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "topologies",
        dependencies=json.dumps([*kafka, *changes.project.settings.dependencies]),
        packages=json.dumps(sorted(packages)),
        modules=json.dumps(sorted(modules)),
    )


def _test(job: Job) -> str:
    topology = job.topology
    scripts = spouts_as_scripts(job)
    spouts = {spec.attribute for spec in topology.specs.values() if spec.is_spout}
    asserts = ""
    for spec in topology.specs.values():
        if not spec.is_spout and {each.producer for each in spec.inputs} & spouts:
            asserts += f"    assert result.executed[{json.dumps(spec.name)}] >= 2\n"
    streams = topology.open_streams()
    rows = ""
    if streams:
        spec, stream = streams[0]
        of = json.dumps(spec.name) + ("" if stream == "default" else f", {json.dumps(stream)}")
        rows = f"    # Say here what must come out: assert result.rows({of}) == [...]\n"
    return (
        _filled(
            "test.py.in",
            topology=topology.name,
            module=topology.file.module,
            kit=", ".join(sorted({"ScriptedSpout", "run_topology", *(["ON"] if "ON(" in scripts else [])})),
            spouts=scripts,
            asserts=asserts or "    assert result.micro_batches >= 1\n",
            rows=rows,
        ).rstrip()
        + "\n"
    )


def _filled(template: str, **values: str) -> str:
    text = (resources.files("pystorm_source.cli") / "migrate_files" / template).read_text(encoding="utf-8")
    return string.Template(text).substitute(values)
