"""Lines of an access log, and what is taken from one; the same expression for all sides."""

import re

PATTERN = r"^\S+ \[(\d+)\] \"(GET|PUT) (\S+)\" (\d{3}) (\d+)ms$"
FIELDS = ("number", "method", "path", "status", "millis")
MATCH = re.compile(PATTERN).match


def line(number: int) -> str:
    """The line of that number, without its end; every tenth does not match."""
    if number % 10 == 3:
        return f"2024-02-29T12:00:{number % 60:02d}Z heartbeat {number}"
    verb = "PUT" if number % 4 == 0 else "GET"
    path = f"/shop/item-{number * 7919 % 1000:04d}?page={number % 13}"
    return f'2024-02-29T12:00:{number % 60:02d}Z [{number}] "{verb} {path}" {200 + number % 5} {number % 311}ms'


def taken(text: str) -> tuple[int, str, str, int, int] | None:
    """The parts of a line; None of another one."""
    found = MATCH(text)
    if found is None:
        return None
    number, method, path, status, millis = found.groups()
    return int(number), method, path, int(status), int(millis)
