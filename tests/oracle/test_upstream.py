"""streamparse's and pystorm's own tests, as they stand, with ours under the names of theirs."""

import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from tests.oracle.conftest import ROOT

FILES = ["test_dsl.py", "test_bolt.py", "test_spout.py", "test_component.py"]

# Before their imports: ours under their names, and json for simplejson, which only their tests need.
CONFTEST = f"""
import json, sys
sys.path.insert(0, {str(ROOT)!r})
sys.modules["simplejson"] = json
from pystorm_source import compat
compat.install()
"""

END_OF_PIPE = re.compile(r"(no|not have the) attribute '(_run|read_(command|handshake|message|tuple))'")

PIPE = "drives a component through its pipe to Storm (read_command, _run, serializer), which is not here"
THRIFT = "looks at Thrift structures, which are not made here"
FOREIGN = "makes components in Java or of the shell, which are refused here"

FAILS = {
    PIPE: """
BatchingBoltTests: test_auto_ack_off test_auto_ack_on test_auto_fail_off test_auto_fail_on
    test_auto_fail_partial_exit_on_exception_false test_auto_fail_partial_exit_on_exception_true test_batching
    test_group_key test_heartbeat_response test_process_tick
BoltTests: test_auto_ack_off test_auto_ack_on test_auto_fail_off test_auto_fail_on test_heartbeat_response
    test_process_tick test_read_tuple test_read_tuple_named_fields test_run test_setup_component
ComponentTests: test_exit_on_exception_false test_exit_on_exception_true test_log test_nested_exception
    test_nested_went_away_exception test_read_command test_read_handshake test_read_message test_read_message_unicode
    test_read_split_message test_read_task_ids test_send_message test_send_message_unicode
SpoutTests: test_ack test_activate test_deactivate test_fail test_next_tuple
""",
    THRIFT: """
TopologyTests: test_basic_spec test_dict_par test_long_chain_spec test_multi_stream_bolt test_spec_with_inputs_as_list
    test_basic_to_flux_dict
""",
    FOREIGN: """
TopologyTests: test_java_bolt_invalid_arg_list test_java_bolt_valid_arg_list test_java_bolt_valid_serialized_java
    test_java_spout_invalid_arg_list test_java_spout_valid_arg_list test_java_spout_valid_serialized_java
    test_perl_bolt test_perl_spout test_shell_bolt_no_command test_shell_bolt_no_script test_shell_spout_no_command
    test_shell_spout_no_script
""",
    "a topology without components is a base of others here": "TopologyTests: test_no_spout",
}


def expected():
    """``Class.test`` → why it fails."""
    found = {}
    for reason, text in FAILS.items():
        kind = ""
        for word in text.split():
            if word.endswith(":"):
                kind = word[:-1]
            else:
                found[f"{kind}.{word}"] = reason
    return found


@pytest.fixture(scope="module")
def outcomes(their_tests, tmp_path_factory):
    """``Class.test`` → the message of its failure, or None."""
    folder = tmp_path_factory.mktemp("theirs")
    (folder / "conftest.py").write_text(CONFTEST)
    for name in FILES:
        (path,) = their_tests.glob(f"*/test/*/{name}")
        (folder / name).write_text(path.read_text())
    pytest_again = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=outcomes.xml", *FILES]
    ended = subprocess.run(pytest_again, cwd=folder, capture_output=True, text=True, timeout=100)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    found = {}
    for case in ElementTree.parse(folder / "outcomes.xml").iter("testcase"):
        failure = case.find("failure")
        name = f"{case.get('classname').rpartition('.')[2]}.{case.get('name')}"
        found[name] = None if failure is None else failure.get("message")
    return found


def test_their_tests_pass_but_for_those_that_cannot(outcomes):
    failed = {name: message for name, message in outcomes.items() if message is not None}
    assert {name: failed[name] for name in failed.keys() - expected().keys()} == {}
    assert expected().keys() - failed.keys() == set()


def test_what_fails_is_told_why(outcomes):
    """What is not here says so with a remedy, or is an end of the pipe, by its name, which docs/MIGRATING.md has."""
    messages = [outcomes[name] or "" for name in expected()]
    assert sum("Given: " in message for message in messages) >= 20
    assert sum("Given: " in message or bool(END_OF_PIPE.search(message)) for message in messages) >= 40
    assert len(outcomes) - len(expected()) >= 40
