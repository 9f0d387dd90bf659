"""`python docs/pictures/draw_scale.py` draws scale.svg of benchmarks/results/scale.jsonl."""

import json
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

PICTURE = Path(__file__).with_name("scale.svg")
RECORDS = Path(__file__).resolve().parents[2] / "benchmarks/results/scale.jsonl"
PANELS = {1.05: "grows with the size", 0.05: "must not grow"}
"""The slope that is asked for → the title of the panel."""


def drawn(path: Path) -> None:
    """Writes the picture: each curve relative to its first size, both axes logarithmic."""
    records = [json.loads(line) for line in RECORDS.read_text().splitlines()]
    # Text stays text, and equal records are equal bytes.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "scale", "font.size": 9}):
        figure = Figure(figsize=(10, 4.6), layout="constrained")
        axes: Any = figure.subplots(1, 2)
        for axis, (asked, title) in zip(axes, PANELS.items(), strict=True):
            for number, record in enumerate(each for each in records if each["asked"] == asked):
                first = record["sizes"][0], record["values"][0]
                axis.plot(
                    [size / first[0] for size in record["sizes"]],
                    [value / first[1] for value in record["values"]],
                    marker="os^v"[number % 4],
                    linestyle=("-", "--", ":")[number // 4],
                    ms=3,
                    label=record["case"],
                )
            axis.set(xscale="log", yscale="log", title=title, xlabel="size, in smallest sizes")
            axis.grid(alpha=0.3)
            axis.legend(fontsize=7)
        axes[0].set_ylabel("cost, in costs of the smallest size")
        axes[1].set_ylim(0.1, 1000)
        figure.savefig(path, format="svg", metadata={"Date": None})


if __name__ == "__main__":
    drawn(PICTURE)
