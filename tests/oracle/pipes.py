"""Runs bolts of the real pystorm as Storm does, through their pipes: ``python pipes.py streamparse < cases > answers``.

What a run gave, in the form that ``runs.py`` has, too: ``calls`` (what the bolt noted down), ``verdicts`` (id of each
tuple → ack, fail or None; the first one), ``anchored`` (ids that an emit was anchored to), ``emits``, ``died``.
"""

import contextlib
import io
import json
import logging
import sys
import tempfile


class Gone(BaseException):
    """In the place of the end of the process."""


def run(scenario):
    import streamparse

    logging.getLogger().handlers.clear()
    names = {name: getattr(streamparse, name) for name in ("BatchingBolt", "Bolt", "Tuple")}
    calls = names["calls"] = []
    exec(scenario["code"], names)
    written = io.BytesIO()
    bolt = names["Subject"](input_stream=io.BytesIO(_pipe(scenario)), output_stream=written)
    exits = []

    def leave(status):
        exits.append(status)
        raise Gone

    bolt._exit = leave
    with contextlib.suppress(Gone):
        bolt.run()
    messages = [json.loads(text) for text in written.getvalue().decode().split("\nend\n") if text.strip()]
    ids = [str(number) for number, step in enumerate(scenario["script"]) if step != "tick"]
    verdicts = dict.fromkeys(ids)
    for message in messages:
        if message.get("command") in ("ack", "fail") and message["id"] in verdicts:
            verdicts[message["id"]] = verdicts[message["id"]] or message["command"]
    emits = [message for message in messages if message.get("command") == "emit"]
    anchored = {anchor for message in emits for anchor in message.get("anchors", ())} & set(ids)
    return {
        "calls": calls,
        "verdicts": verdicts,
        "anchored": sorted(anchored),
        "emits": [message["tuple"] for message in emits],
        "died": exits[0] != 2,  # 2: Storm went away
    }


def _pipe(scenario):
    context = {"taskid": 1, "componentid": "subject", "source->stream->fields": {"lines": {"default": ["a", "n"]}}}
    messages = [{"pidDir": tempfile.mkdtemp(), "conf": {"pystorm.log.level": "critical"}, "context": context}]
    for number, step in enumerate([*scenario["script"], *["tick"] * scenario.get("last_ticks", 1)]):
        if step == "tick":
            messages.append({"id": f"tick{number}", "comp": "__system", "stream": "__tick", "task": -1, "tuple": [1]})
        else:
            messages.append({"id": str(number), "comp": "lines", "stream": "default", "task": 3, "tuple": step})
    return "".join(f"{json.dumps(message)}\nend\n" for message in messages).encode()


if __name__ == "__main__":
    json.dump({name: run(scenario) for name, scenario in json.load(sys.stdin).items()}, sys.stdout)
