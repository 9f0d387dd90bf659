"""The HTML document of the page: style, scripts and data in one text, and the policy that lets nothing else run."""

import base64
import hashlib
from functools import cache
from html import escape
from pathlib import Path
from typing import NamedTuple

from pystorm_source.observe.page.view import View
from pystorm_source.types.json_values import well_formed

FOLDER = Path(__file__).parent
STYLES = ("vendor/uPlot.min.css", "page.css")
SCRIPTS = ("vendor/uPlot.iife.min.js", "vendor/dagre.min.js")
OURS = ("dom.js", "graph.js", "charts.js", "bars.js", "tables.js", "headline.js", "component.js", "page.js")
POLL_SECONDS = 2.0
"""Between two requests of a served page. Less: more work for nothing new. More: news arrives late."""


class _Parts(NamedTuple):
    body: str
    style: str
    scripts: tuple[str, ...]
    hashes: str
    """The sources of the policy: any other script or style is refused."""


@cache
def _parts() -> _Parts:
    def read(name: str) -> str:
        return (FOLDER / name).read_text(encoding="utf-8")

    style = "\n".join(map(read, STYLES))
    ours = '(() => {\n"use strict";\n' + "\n".join(map(read, OURS)) + "})();\n"
    scripts = (*map(read, SCRIPTS), ours)
    allowed = " ".join(map(_hash, scripts))
    return _Parts(read("body.in"), style, scripts, f"script-src {allowed}; style-src {_hash(style)}")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def policy(connects: bool) -> str:
    """The Content-Security-Policy. ``connects``: whether the page asks its server for more."""
    return (
        f"default-src 'none'; {_parts().hashes}; connect-src {chr(39) + 'self' + chr(39) if connects else _NONE}; "
        f"base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


_NONE = "'none'"


def document(view: View, *, poll: str = "", key: str = "") -> str:
    """The complete page. ``poll``: where a served page asks for newer data, relative to its own address. ``key``: if a
    newer page will replace this one, the browser keeps what is open, and the scroll position, under it."""
    parts = _parts()
    attributes = f'data-poll="{escape(poll)}" data-every="{POLL_SECONDS}" data-key="{escape(key)}"'
    return "".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{escape(policy(bool(poll)))}">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            '<meta name="referrer" content="no-referrer">\n<meta name="color-scheme" content="light dark">\n',
            f"<title>{_title(view)}</title>\n<style>{parts.style}</style>\n</head>\n",
            f"<body {attributes}>\n{parts.body}",
            f'<script type="application/json" id="view">{view.to_json().decode()}</script>\n',
            *(f"<script>{script}</script>\n" for script in parts.scripts),
            "</body>\n</html>\n",
        ]
    )


def _title(view: View) -> str:
    return escape(well_formed(view.title) or "pystorm source")


def framed(view: View, key: str, height: int) -> str:
    """The page as a notebook's output, in a frame, so that page and notebook do not affect each other's styles or
    scripts."""
    source = escape(document(view, key=key))
    return (
        f'<iframe title="{_title(view)}" srcdoc="{source}" '
        f'sandbox="allow-scripts allow-same-origin" '
        f'width="100%" height="{height}" frameborder="0"></iframe>'
    )
