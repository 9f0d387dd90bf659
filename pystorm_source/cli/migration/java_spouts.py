"""Java spouts that read Kafka: what their source code says about topic, start and format."""

import re
from dataclasses import dataclass
from pathlib import Path

from pystorm_source.cli.migration.components import literal
from pystorm_source.cli.migration.topologies import Spec

QUESTION = "QUESTION"
_STRING = r'"([^"\\]*)"'
_HOSTS = r"(?:\w+|new\s+\w+\s*\([^()]*\))"
_OLD = re.compile(rf"new\s+(?:Spout|Kafka)Config\s*\(\s*{_HOSTS}\s*,\s*{_STRING}(?:\s*,\s*{_STRING}\s*,\s*{_STRING})?")
_ZOOKEEPER = re.compile(rf"new\s+ZkHosts\s*\(\s*{_STRING}")
_NEW = re.compile(rf"KafkaSpoutConfig\s*\.\s*(?:<[^>]*>\s*)?builder\s*\(\s*{_STRING}\s*,\s*((?:{_STRING}\s*,?\s*)+)\)")
_PATTERN = re.compile(rf"KafkaSpoutConfig[^;]*builder\s*\(\s*{_STRING}\s*,\s*Pattern\.compile\(\s*{_STRING}")
_GROUP = re.compile(rf"(?:setGroupId\s*\(|GROUP_ID_CONFIG\s*,|\"group\.id\"\s*,)\s*{_STRING}")
_LATEST = re.compile(r"LatestTime\(\)|UNCOMMITTED_LATEST|FirstPollOffsetStrategy\.LATEST")
_EARLIEST = re.compile(
    r"forceFromStart\s*=\s*true|EarliestTime\(\)|UNCOMMITTED_EARLIEST|FirstPollOffsetStrategy\.EARLIEST"
)
_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|/\*.*?\*/|//[^\n]*', re.DOTALL)


@dataclass
class KafkaSource:
    """What is known about the source; "" or None for what is not."""

    java: str
    """Where that was read: a path, or the class name if there is no source code."""
    servers: str = ""
    zookeeper: str = ""
    topics: str = ""
    pattern: str = ""
    group: str = ""
    starts: str = ""
    text: bool | None = None
    """Whether records are texts; None if uncertain."""


def kafka_source(root: Path, spec: Spec) -> KafkaSource | None:
    """Returns what a JavaSpout reads from Kafka, or None if it is not a Kafka spout."""
    name = str(literal(spec.given.get("full_class_name"), ""))
    path, source = _source(root, name)
    if spec.foreign != "JavaSpout" or not ("kafka" in name.lower() or re.search(r"\bKafkaSpout\b|SpoutConfig", source)):
        return None
    found = KafkaSource(path.as_posix() if path else name)
    if match := _OLD.search(source):
        found.topics, found.group = match[1], match[3] or ""
    if match := _ZOOKEEPER.search(source):
        found.zookeeper = match[1]
    if match := _NEW.search(source):
        found.servers, found.topics = match[1], ",".join(re.findall(_STRING, match[2]))
    elif match := _PATTERN.search(source):
        found.servers, found.pattern = match[1], match[2]
    if match := _GROUP.search(source):
        found.group = match[1]
    if bool(_LATEST.search(source)) != bool(_EARLIEST.search(source)):
        found.starts = "latest" if _LATEST.search(source) else "earliest"
    if "StringScheme" in source or "StringDeserializer" in source:
        found.text = True
    elif "RawScheme" in source or "ByteArrayDeserializer" in source or "RawMultiScheme" in source:
        found.text = False
    return found


def _source(root: Path, class_name: str) -> tuple[Path | None, str]:
    """Returns the class's Java file and its text without comments; None and "" if the project has no such file."""
    wanted = Path(*class_name.split(".")).with_suffix(".java") if class_name else None
    for path in sorted(root.rglob("*.java")):
        if wanted and path.relative_to(root).as_posix().endswith(wanted.as_posix()):
            text = path.read_text(encoding="utf-8", errors="replace")
            return path.relative_to(root), _COMMENT.sub(lambda found: found[0] if found[0][0] == '"' else " ", text)
    return None, ""
