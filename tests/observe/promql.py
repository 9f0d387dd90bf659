"""What expressions of Prometheus name."""

import re


def names_in(text: str) -> set[str]:
    """The metrics of ours."""
    return set(re.findall(r"\bpystorm_\w+", text))
