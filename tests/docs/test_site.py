"""The site of the documents: each page and each public name has its place. (`make docs` follows the links.)"""

import re
from collections import Counter

from docs.contents import INDEX, LLMS, contents, llms
from tests.docs.pages import ROOT
from tests.docs.test_docstrings import NAMED

PAGES = {
    path.relative_to(ROOT).as_posix()
    for path in [*ROOT.glob("docs/*.md"), *ROOT.glob("docs/lessons/*.md"), *ROOT.glob("docs/api/*.rst")]
}


def test_each_page_is_in_the_index_once():
    indexed = Counter(page.path for pages in contents().values() for page in pages)
    missing = sorted(PAGES - indexed.keys() - {INDEX.relative_to(ROOT).as_posix()})
    assert not missing, f"docs/README.md lacks {missing}: add a row, `| to do this | [NAME.md](NAME.md) |`"
    assert indexed.most_common(1)[0][1] == 1, indexed.most_common(1)


def test_each_section_has_pages_with_a_purpose():
    for section, pages in contents().items():
        assert pages, f"{section} has no page"
        for page in pages:
            assert page.purpose and page.title, page


def test_llms_txt_is_the_index():
    assert LLMS.read_text() == llms(), "run: python docs/contents.py --write"


def test_each_public_name_is_in_the_reference_once():
    """Those of `pystorm_source.testing` come from its `__all__`."""
    pages = "\n".join(path.read_text() for path in ROOT.glob("docs/api/*.rst"))
    there = Counter(re.findall(r"^\.\. auto(?:class|exception|function):: (\S+)$", pages, re.MULTILINE))
    public = {each.name for each in NAMED if not each.name.startswith("pystorm_source.testing.")}
    missing = sorted(public - there.keys())
    assert not missing, f"docs/api/*.rst lacks {missing}"
    assert not there - Counter(public), f"docs/api/*.rst names what is not public: {there - Counter(public)}"
    assert ".. automodule:: pystorm_source.testing" in pages
