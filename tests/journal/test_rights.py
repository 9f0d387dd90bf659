"""A journal whose driver is another user than its executors."""

import grp
import os
import pwd
import shutil
import tempfile
from pathlib import Path

import pytest

from pystorm_source.journal import private_files
from pystorm_source.journal.private_files import FileGroup, group_remedy
from pystorm_source.journal.store import journal_store

NOBODY = 65_534
is_root = pytest.mark.skipif(os.geteuid() != 0, reason="runs a part as another user")


@pytest.fixture
def folder():
    """One that every user may look into; pytest's own are this user's."""
    made = Path(tempfile.mkdtemp(prefix="pystorm-rights-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


def as_nobody(do):
    """What the text of the error is that ``do`` raises as another user."""
    read, write = os.pipe()
    if not (child := os.fork()):
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            do()
            said = "nothing"
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with open(read, "rb") as end:
        said = end.read().decode()
    os.waitpid(child, 0)
    return said


@is_root
@pytest.mark.parametrize("do", ["read", "replace", "append", "names"])
def test_an_executor_is_told_the_option_and_its_value(folder, do):
    store = journal_store(str(folder / "journal"), "id")
    store.replace("manifest", b"1")
    given = {"read": ["manifest"], "replace": ["manifest", b"2"], "append": ["segment"], "names": []}[do]
    said = as_nobody(lambda: getattr(store, do)(*given))
    assert "[PYSTORM_JOURNAL_UNREACHABLE]" in said
    assert "User 'root' made it, and this process runs as 'nobody'. Set journal.group to a group" in said
    assert "Given: " in said.splitlines()[0]


def test_a_group_of_both_users_is_named(tmp_path, monkeypatch):
    me = pwd.getpwuid(os.geteuid())
    shared = grp.struct_group(("etl", "x", 7, [me.pw_name, "spark"]))
    monkeypatch.setattr(private_files, "_owner", lambda path: 4711)
    monkeypatch.setattr(private_files.grp, "getgrall", lambda: [shared, grp.struct_group(("own", "x", 8, ["spark"]))])
    spark = pwd.struct_passwd(("spark", "x", 4711, 8, "", "/", "/bin/sh"))
    monkeypatch.setattr(private_files.pwd, "getpwuid", lambda number: {4711: spark}.get(number, me))
    assert "Set journal.group=etl;" in group_remedy(tmp_path / "a", "journal.group")


def test_what_is_this_users_or_not_there_needs_no_group(tmp_path):
    assert group_remedy(tmp_path / "none", "journal.group") == ""
    assert group_remedy(tmp_path / "none" / "none", "journal.group") == ""


@is_root
def test_a_group_that_the_user_is_no_member_of_is_named(folder):
    folder.chmod(0o777)
    store = journal_store(str(folder / "journal"), "id", group=FileGroup("0", "journal.group", may_write=True))
    said = as_nobody(lambda: store.replace("manifest", b"1"))
    assert "option 'journal.group' names a group of which the user that writes these files is a member" in said
    assert said.endswith("Given: '0'")
