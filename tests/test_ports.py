"""Ports for servers that are killed and started again: nobody else gets them while the server is down."""

import socket
from pathlib import Path

import pytest

from testbed.ports import free_port

NEAR_ENDS = Path("/proc/sys/net/ipv4/ip_local_port_range")


@pytest.mark.skipif(not NEAR_ENDS.exists(), reason="only Linux says which ports it hands out")
def test_a_port_is_none_that_the_system_hands_out():
    first, last = map(int, NEAR_ENDS.read_text().split())
    assert not any(first <= free_port() <= last for _ in range(200))


def test_a_port_can_be_listened_on():
    with socket.create_server(("127.0.0.1", free_port())) as server:
        assert server.getsockname()[1] > 0
