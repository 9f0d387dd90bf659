"""The site of the documents: `make docs` builds it into build/docs, with every warning as an error.

The pages are those that a reader of the repository sees; the sources are the top of the checkout, so that links between
pages hold in both. The navigation is the index, docs/README.md.
"""

import shutil
from pathlib import Path

from docs.contents import ROOT, contents
from pystorm_source import __version__

project = "pystorm source"
release = version = __version__
copyright = "the authors of pystorm source"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "README"
include_patterns = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "benchmarks/README.md"]
include_patterns += ["CODE_OF_CONDUCT.md", "MAINTAINERS.md"]
include_patterns += ["examples/README.md", "examples/compiled_bolt/README.md"]
include_patterns += ["docs/*.md", "docs/lessons/*.md", "docs/api/*.rst"]
# Left out by name as well: a folder that matches no pattern is walked through all the same.
exclude_patterns = [".*", "build", "dist", "cython_core", "tests", "testbed"]

myst_heading_anchors = 4
suppress_warnings = ["myst.header"]
autodoc_typehints = "none"  # Google's Args have the types
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True  # an attribute told in Attributes may be a property as well
default_role = "code"

html_theme = "furo"
html_title = f"{project} {release}"
html_copy_source = False
html_extra_path = ["../llms.txt"]


def add_navigation(app, docname, source):
    """Puts the index behind the first page, as Sphinx's toctrees: the repository's view shows none of it."""
    if docname == root_doc:
        for section, pages in contents().items():
            names = [f"/{Path(page.path).with_suffix('')}" for page in pages if page.path.endswith((".md", ".rst"))]
            entries = "\n".join("/docs/README" if name == f"/{root_doc}" else name for name in names)
            source[0] += f"\n\n```{{toctree}}\n:hidden:\n:caption: {section}\n\n{entries}\n```\n"


def add_copies(app, exception):
    """The first page is the site's index; llms.txt links the Markdown of the pages."""
    if exception is None:
        out = Path(app.outdir)
        shutil.copyfile(out / f"{root_doc}.html", out / "index.html")
        for page in (page for pages in contents().values() for page in pages):
            (out / page.path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / page.path, out / page.path)


def setup(app):
    app.connect("source-read", add_navigation)
    app.connect("build-finished", add_copies)
