"""Each reason of a stall has a colour of its own list on the page."""

import re
from pathlib import Path

from pystorm_source.observe import page
from pystorm_source.records.stall_reasons import REASONS, WORDS


def test_the_page_knows_every_reason():
    script = (Path(page.__file__).parent / "bars.js").read_text()
    listed = re.findall(r'"(\w+)"', script[script.index("const STALLS") : script.index("function stallKind")])
    assert set(listed) == set(REASONS) == set(WORDS)
