"""The index of beginnings gives what comparing with each gives."""

from hypothesis import given
from hypothesis import strategies as st

from pystorm_source.spouts.files.identity.catalog import FileEntry
from pystorm_source.spouts.files.listing.leads import Leads

texts = st.binary(max_size=6).map(lambda raw: bytes(byte % 2 + 97 for byte in raw))


@given(st.lists(texts), texts)
def test_those_that_begin_alike_are_found(leads, asked):
    files = [(lead, FileEntry(str(n), "", 0, n, 0, 0, 0)) for n, lead in enumerate(leads)]
    expected = {file for lead, file in files if lead.startswith(asked) or asked.startswith(lead)}
    made = Leads()
    for lead, file in files:
        made.add(lead, file)
    found = list(made.alike(asked))
    assert set(found) == expected and len(found) == len(expected)
