"""Java and shell components: one that reads Kafka becomes a KafkaSpout; any other becomes a question."""

import ast
import json

from pystorm_source.cli.migration.components import literal
from pystorm_source.cli.migration.edits import Edit
from pystorm_source.cli.migration.java_spouts import QUESTION, KafkaSource
from pystorm_source.cli.migration.jobs import Job, Option
from pystorm_source.cli.migration.settings import split_config
from pystorm_source.cli.migration.topologies import Spec


def as_kafka_spout(job: Job, spec: Spec, source: KafkaSource) -> list[Edit]:
    """Returns the changes to the topology's file; adds findings and options to the job."""
    job.change(spec, f"{spec.foreign} {source.java} becomes KafkaSpout, with offsets: exactly once (docs/KAFKA.md)")
    if source.text is None:
        job.ask(spec, "are its records text? The copy says so; for bytes say fields=['value binary']")
    if not source.servers:
        was = f"; ZooKeeper, which is not asked any more, was {source.zookeeper}" if source.zookeeper else ""
        job.ask(spec, f"which brokers? kafka.bootstrap.servers in job.py{was}")
        job.options.append(Option("kafka.bootstrap.servers", f"{QUESTION}: brokers, as host:port{was}"))
    if not source.topics and not source.pattern:
        job.ask(spec, f"which topics? {source.java} does not say it in a form known here: subscribe in job.py")
        job.options.append(Option("subscribe", f"{QUESTION}: topics, separated by commas"))
    group = f" {source.group}" if source.group else ""
    why = f"Of a new query. Where the old consumer{group} stopped is not known here; JSON begins anywhere"
    job.options.append(Option("startingOffsets", source.starts or f"{QUESTION}: earliest or latest", why))
    if source.starts:
        job.change(
            spec, f"startingOffsets={source.starts} in job.py: where the old consumer{group} stopped is not known here"
        )
    else:
        job.ask(spec, "where does it begin? startingOffsets in job.py")
    return [Edit.of(spec.node, _kafka_call(spec, source)), *_renamed_fields(job, spec)]


def _kafka_call(spec: Spec, source: KafkaSource) -> str:
    arguments = [f"name={json.dumps(spec.name)},"] if "name" in spec.given else []
    if source.servers:
        arguments.append(f"servers={json.dumps(source.servers)},")
    if source.pattern:
        arguments.append(f"subscribe_pattern={json.dumps(source.pattern)},")
    elif source.topics:
        arguments.append(f"subscribe={json.dumps(source.topics)},")
    question = f"  # {QUESTION}: text? Bytes are value binary" if source.text is None else ""
    arguments.append(f'fields=["value {"binary" if source.text is False else "string"}"],{question}')
    config = split_config(spec.config)[0]
    if config:
        arguments.append(f"config={config!r},")
    lines = "".join(f"        {argument}\n" for argument in arguments)
    return f"KafkaSpout.spec(\n        # It was {spec.foreign} {source.java}.\n{lines}    )"


def _renamed_fields(job: Job, spec: Spec) -> list[Edit]:
    """Renames the field to ``value``, a KafkaSpout's name for it, in groupings of the topology and in bolts."""
    old = ((spec.outputs or {}).get("default") or ["value"])[0].split(" ")[0]
    edits: list[Edit] = []
    for other in job.topology.specs.values() if old != "value" else ():
        subscribed = [one for one in other.inputs if one.producer == spec.attribute]
        if not other.foreign:  # its entire call is replaced
            edits += [Edit.of(name, '"value"') for one in subscribed for name in one.fields if name.value == old]
        if not subscribed or other.component is None:
            continue
        for file, method in other.component.methods.values():
            for node in ast.walk(method):
                if isinstance(node, ast.Attribute) and node.attr == old and ast.unparse(node.value).endswith(".values"):
                    now = f"{ast.unparse(node.value)}.value"
                    job.ask(other, f"{file.at(node)}: the field {old!r} is called 'value' now: say {now}")
    return edits


def ask_for_python(job: Job, spec: Spec) -> None:
    """Leaves any other component as it is; it raises NotImplementedError until you replace it."""
    what = literal(spec.given.get("full_class_name")) or literal(spec.given.get("command")) or "serialized Java"
    kind = "PartitionedSpout" if spec.is_spout else "Bolt"
    job.ask(spec, f"{spec.foreign} {what} does not run here: write it as a {kind}; Java may follow in Spark")
