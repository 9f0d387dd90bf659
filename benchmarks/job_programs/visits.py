"""Visits, each the name of its visitor, of whom there are 100,000."""

VISITORS = 100_000


def visit(number: int) -> bytes:
    """The visitor of that visit: always the same one."""
    return b"visitor-%06d" % (number * 7919 % VISITORS)
