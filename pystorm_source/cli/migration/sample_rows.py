"""Rows for the tests: what a spout may emit, as far as the code shows."""

import ast
import json

from pystorm_source.cli.migration.components import Component
from pystorm_source.cli.migration.java_spouts import QUESTION
from pystorm_source.cli.migration.jobs import Job
from pystorm_source.cli.migration.stream_types import StreamTypes
from pystorm_source.cli.migration.topologies import Spec

ROWS = 2
_SAMPLES = {"string": "{field}-{n}", "long": "{n}", "double": "{n}.5", "boolean": "True", "binary": "b'{field}-{n}'"}


def spouts_as_scripts(job: Job) -> str:
    """Returns the lines of a subclass of the topology that replace its spouts: two rows for each."""
    types = StreamTypes(job.topology, job.kafka)
    lines = []
    for spec in job.topology.specs.values():
        if not spec.is_spout:
            continue
        streams = {"default": ["value string"]} if spec.attribute in job.kafka else dict(spec.outputs or {})
        outputs = _outputs(spec, streams, job.topology.name)
        rows: list[str] = []
        certain = bool(streams)
        for stream, fields in streams.items():
            names = [field.split(" ")[0] for field in fields]
            known = ["string"] if spec.attribute in job.kafka else types.columns(spec, stream)
            for number in range(1, ROWS + 1):
                values = []
                for position, (name, ddl) in enumerate(zip(names, known, strict=True)):
                    text = _json_read(job, spec, stream, position, name, number)
                    certain = certain and bool(text or ddl in _SAMPLES)
                    values.append(text or _sample(ddl, name, number))
                row = f"[{', '.join(values)}]"
                rows.append(row if stream == "default" else f"ON({json.dumps(stream)}, {row})")
        given_name = f"name={json.dumps(spec.name)}" if spec.name != spec.attribute else ""
        if not certain:
            lines.append(f"    # {QUESTION}: rows as {spec.name} emits them?")
        inner = "".join(f"        {row},\n" for row in [outputs, *rows])
        lines.append(f"    {spec.attribute} = ScriptedSpout.of(\n{inner}    ).spec({given_name})")
    return "\n".join(lines) + "\n"


def _outputs(spec: Spec, streams: dict[str, list[str]], topology: str) -> str:
    if set(streams) == {"default"} and streams["default"]:
        return json.dumps(streams["default"])
    return f"list({topology}.{spec.attribute}.streams)"


def _sample(ddl: str | None, field: str, number: int) -> str:
    text = _SAMPLES.get(ddl or "string", _SAMPLES["string"]).format(field=field, n=number)
    return json.dumps(text) if ddl not in _SAMPLES or ddl == "string" else text


def _json_read(job: Job, spec: Spec, stream: str, position: int, field: str, number: int) -> str:
    """Returns the source text of a JSON document with the keys that a bolt reads from that field; "" if none does."""
    for other in job.topology.specs.values():
        if other.component and any(each.producer == spec.attribute and each.stream == stream for each in other.inputs):
            keys = _keys_read(other.component, position, field)
            if keys:
                return repr(json.dumps({key: f"{key}-{number}" for key in keys}))
    return ""


def _keys_read(component: Component, position: int, field: str) -> list[str]:
    found: list[str] = []
    for file, method in component.methods.values():
        documents = {
            node.targets[0].id
            for node in ast.walk(method)
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and isinstance(node.value, ast.Call)
            and file.full_name(node.value.func) in ("json.loads", "simplejson.loads", "ujson.loads")
            and node.value.args
            and ast.unparse(node.value.args[0]).endswith((f".values[{position}]", f".values.{field}"))
        }
        for node in ast.walk(method):
            key: ast.expr | None = None
            if isinstance(node, ast.Subscript) and _is_one_of(node.value, documents):
                key = node.slice
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
                key = node.args[0] if node.args and _is_one_of(node.func.value, documents) else None
            if isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value not in found:
                found.append(key.value)
    return found


def _is_one_of(node: ast.expr, names: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names
