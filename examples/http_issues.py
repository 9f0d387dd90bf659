"""The urgent issues of several repositories, read page by page from an HTTP API that names its next page in a header.

The API is described in a class body; ``http.url`` and ``http.token`` are options of the query.
"""

from pystorm_source import Bolt, Topology
from pystorm_source.spouts import HttpSpout


class IssueSpout(HttpSpout):
    outputs = ["number long", "title string", "labels array<string>", "created_at timestamp"]
    url = "https://api.example.org/repos/{partition}/issues?sort=created&direction=asc"
    partition_names = ["storm", "spark"]
    paging = "link"
    limit_parameter = "per_page"
    page_rows = 100  # the most that this API gives
    poll_seconds = 30.0


class UrgentBolt(Bolt):
    outputs = ["number long", "title string", "created_at timestamp"]

    def process(self, tup):
        number, title, labels, created_at = tup.values
        if "urgent" in labels:
            self.emit([number, title, created_at])


class UrgentIssues(Topology):
    issues = IssueSpout.spec()
    urgent = UrgentBolt.spec(inputs=[issues])
