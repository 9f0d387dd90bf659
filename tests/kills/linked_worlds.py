"""Sources whose servers are in this process: only the way to them dies, because they keep nothing on disk."""

import time
from collections.abc import Sequence

from testbed.s3_server import S3Server
from testbed.sqs_server import sqs_server
from tests.kills.source_topologies import text
from tests.kills.source_world import World
from tests.spouts.events.stream import stream
from tests.spouts.http import api
from tests.spouts.objects.lake import Bucket


class HttpWorld(World):
    topology = "Pages"

    def open(self) -> None:
        self.api = self.held.enter_context(api.api())
        paging = self.chance.choice(["cursor", "link", "offset", "page", "since"])
        self.options |= {**api.options(self.api, paging), "http.url": f"{self.linked(self.api.url)}/{paging}"}

    def put(self, ids: Sequence[int]) -> None:
        self.api.rows[""] += [{"id": n, "text": text(n)} for n in ids]


class EventWorld(World):
    topology = "Events"

    def open(self) -> None:
        self.stream = self.held.enter_context(stream())
        url = self.linked(f"http://127.0.0.1:{self.stream.server_port}")
        self.options["events.url"] = f"{url}/events"

    def put(self, ids: Sequence[int]) -> None:
        self.stream.fill(len(ids))


class SqsWorld(World):
    topology = "Bodies"
    quiet = 7.0  # leases are over after five

    def open(self) -> None:
        server = self.held.enter_context(sqs_server())
        self.client = server.client()
        fifo = self.chance.random() < 0.5
        name = f"kills-{self.folder.name}-{time.time_ns()}" + ".fifo" * fifo
        settings = {"VisibilityTimeout": "5"} | ({"FifoQueue": "true"} if fifo else {})
        self.queue = self.client.create_queue(QueueName=name, Attributes=settings)["QueueUrl"]
        self.options |= {"sqs.queue": name, "sqs.endpoint_url": self.linked(server.url)}

    def put(self, ids: Sequence[int]) -> None:
        for n in ids:
            more = {}
            if self.queue.endswith(".fifo"):
                more = {"MessageGroupId": str(n % 7), "MessageDeduplicationId": str(n)}
            self.client.send_message(QueueUrl=self.queue, MessageBody=f"{n}:{text(n)}", **more)


class ObjectsWorld(World):
    topology = "Objects"
    is_journaled = False

    def open(self) -> None:
        server = S3Server()
        self.held.callback(server.stop)
        self.bucket = Bucket(server, f"kills-{time.time_ns()}")
        self.options |= self.bucket.options | {"objects.config.endpoint": self.linked(server.url)}
        self.options |= {"path": self.bucket.path, "journal.path": self.bucket.path.replace("/in", "/journal")}
        self.options["maxOffsetsPerTrigger"] = 1500

    def put(self, ids: Sequence[int]) -> None:
        lines = "".join(f'{{"id": {n}, "text": "{text(n)}"}}\n' for n in ids)
        self.bucket.put(f"{ids[0]:09}.json", lines.encode())
