"""Whether a test that hangs in compiled code shows where."""

import time

from _pytest.faulthandler import fault_handler_stderr_fd_key

from tests import stuck

DEADLINE = 30


def test_stacks_are_printed_of_a_test_that_no_other_one_follows_in_time(tmp_path, monkeypatch, request):
    path, end = tmp_path / "stderr", time.monotonic() + DEADLINE
    monkeypatch.setattr(stuck, "AFTER_SECONDS", 0.01)
    monkeypatch.setattr(stuck, "_renewed", float("-inf"))  # after this test, the next one renews the watch by itself
    with path.open("w") as file:
        monkeypatch.setitem(request.config.stash, fault_handler_stderr_fd_key, file.fileno())
        stuck.watch(request.config)
        while request.function.__name__ not in (said := path.read_text()):
            if said.rstrip().endswith("..."):
                break  # of a hundred threads, which Spark's callbacks have made: the main one is the last
            assert time.monotonic() < end, said
            time.sleep(0.001)


def test_a_test_that_begins_soon_after_another_one_starts_no_thread(monkeypatch, request):
    now = time.monotonic()
    monkeypatch.setattr(stuck, "_renewed", now)
    stuck.watch(request.config)
    assert stuck._renewed == now
