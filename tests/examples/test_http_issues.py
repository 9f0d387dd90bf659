"""The example that reads an HTTP API, from a real server."""

from datetime import UTC, datetime

from examples.http_issues import UrgentIssues
from pystorm_source.testing import run_topology
from tests.spouts.http.api import api


def issue(number):
    labels = ["urgent", "docs"] if number % 50 == 0 else []
    return {"number": number, "title": f"issue {number}", "labels": labels, "created_at": "2026-11-28T10:00:00Z"}


def test_the_urgent_issues_of_both_repositories():
    with api() as server:
        server.most = 100
        server.rows = {"storm": [issue(n) for n in range(1, 121)], "spark": [issue(n) for n in range(1, 61)]}
        rows = run_topology(UrgentIssues, config={"http.url": server.url + "/link/{partition}"}).rows("urgent")
    at = datetime(2026, 11, 28, 10, tzinfo=UTC)
    assert sorted(rows) == sorted((n, f"issue {n}", at) for n in (50, 100, 50))
