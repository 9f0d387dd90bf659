"""Names of tables as SQL writes them."""

import pytest

from pystorm_source.errors import OptionError
from pystorm_source.spouts.postgres.names import table_names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        (" , ", []),
        ("orders", [("public", "orders")]),
        ("Orders, public.orders ,app.Things", [("public", "orders"), ("app", "things")]),
        ('"Orders","a.b"."c,""d"', [("public", "Orders"), ("a.b", 'c,"d')]),
    ],
)
def test_names_are_folded_unless_quoted(text, names):
    assert table_names(text) == names


@pytest.mark.parametrize("text", ["a.b.c", "a b", '"a', "a.", ".a", '"a"b'])
def test_what_is_no_name_is_refused(text):
    with pytest.raises(OptionError, match=r"'postgres\.tables' has names as SQL writes them"):
        table_names(text)
