"""Bytes of an event stream, however they are cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystorm_source.spouts.events.parser import Event, EventParser

LINES = st.lists(
    st.sampled_from(["data: a", "data:b", "data", ":", ": beat", "id: 1", "id", "event: edit", "retry: 5", "", "x: y"])
)


def events(text, id=""):
    return EventParser(id).feed(text.encode())


def test_fields_of_an_event():
    assert events("id: 1\nevent: edit\ndata: a\ndata:  b\n\n") == [Event("1", "edit", "a\n b")]


def test_an_event_without_a_type_is_a_message_and_has_the_last_id():
    assert events("id: 1\ndata: a\n\ndata: b\n\n", "0") == [Event("1", "message", "a"), Event("1", "message", "b")]


def test_comments_unknown_fields_and_events_without_data_give_nothing():
    assert events(": beat\n\nevent: edit\n\nother: x\n\n") == []


def test_an_id_without_data_counts_and_one_with_a_nul_does_not():
    parser = EventParser()
    parser.feed(b"id: 4\n\nid: 5\0\n\n")
    assert parser.id == "4"


@pytest.mark.parametrize(("text", "retry"), [("retry: 250\n", 250), ("retry: soon\n", None), ("retry: ٣\n", None)])
def test_retry_is_a_number_in_ascii(text, retry):
    parser = EventParser()
    parser.feed(text.encode())
    assert parser.retry == retry


def test_half_an_event_gives_nothing():
    assert events("id: 1\ndata: a\n") == []


@given(LINES, st.sampled_from(["\n", "\r\n", "\r"]), st.booleans(), st.data())
def test_cuts_and_ends_of_lines_change_nothing(lines, end, has_mark, data):
    wanted = events("\n".join([*lines, ""]))
    whole = (("\ufeff" if has_mark else "") + end.join([*lines, ""])).encode()
    parser, found, at = EventParser(), [], 0
    while at < len(whole):
        size = data.draw(st.integers(1, 5))
        found += parser.feed(whole[at : at + size])
        at += size
    # A carriage return at the very end may be half of a line's end.
    assert found == wanted or (end == "\r" and found == wanted[: len(found)] and len(wanted) - len(found) == 1)


def test_an_event_has_begun_at_its_first_byte_and_ended_at_its_blank_line():
    parser = EventParser()
    assert not parser.is_amid
    found = []
    for byte in b":hello\nretry: 10\n\nid: 1\nevent: edit\ndata: a\n\n:bye\n":
        parser.feed(bytes([byte]))
        found.append(parser.is_amid)
    text = ":hello\nretry: 10\n\nid: 1\nevent: edit\ndata: a\n\n:bye\n"
    first, last = text.index("id"), text.index("\n\n:bye")
    assert all(found[first : last + 1])
    assert not any(found[last + 1 :])
