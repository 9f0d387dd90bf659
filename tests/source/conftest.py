"""What the tests of journaled spouts share: a journal in a folder, or in an object store."""

import pytest

from pystorm_source.journal import store
from tests.journal.object_store import ObjectsInMemory
from tests.source.journal_world import Journaled


@pytest.fixture
def journaled(tmp_path):
    return Journaled(tmp_path)


@pytest.fixture
def objects(journaled, monkeypatch):
    """The journal lies in an object store."""
    handler = ObjectsInMemory()
    monkeypatch.setattr(store, "file_system", lambda path: (handler.file_system(), "bucket/journal"))
    journaled.options_path = "s3://bucket/journal"
    return handler.objects
