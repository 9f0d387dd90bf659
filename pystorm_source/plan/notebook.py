"""What a notebook shows of a topology: its picture, or why it cannot run."""

import base64
from html import escape

from pystorm_source.api.topology import Topology
from pystorm_source.errors import PystormError
from pystorm_source.plan.compile import compile_plan
from pystorm_source.plan.layered_svg import as_svg
from pystorm_source.plan.picture import Picture, as_text


def svg_of(topology: type[Topology]) -> str | None:
    """The picture as SVG; None if the topology cannot run."""
    try:
        return as_svg(Picture.of(compile_plan(topology, any_environment=True)))
    except PystormError:
        return None


def html_of(topology: type[Topology]) -> str:
    """The picture as an image, so its styles do not affect the notebook; or what is wrong with the topology."""
    try:
        plan = compile_plan(topology, any_environment=True)
    except PystormError as error:
        return f"<pre>{escape(str(error))}</pre>"
    data = base64.b64encode(as_svg(Picture.of(plan)).encode()).decode()
    text = escape(as_text(plan).replace("\x00", "\ufffd"))
    return f'<img style="max-width: 100%" alt="{text}" src="data:image/svg+xml;base64,{data}">'
