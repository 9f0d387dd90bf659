"""Calls of one SQS queue, several at once, by a client of boto3."""

import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar

from cython_core.routing.failure_kinds import RetryLater
from pystorm_source.errors import OptionError, WorldError
from pystorm_source.errors.packages import package
from pystorm_source.spouts.sqs_options import SqsOptions

MOST = 10
"""Messages or entries of one call: the limit of SQS."""
ATTEMPTS = 3
"""How often entries that failed are sent before the query waits. Fewer: a passing failure costs a pause. More: a queue
that is busy is asked without one."""
PAUSE_SECONDS = 1.0
"""Until a busy queue is asked again. Less: it stays busy. More: a passing failure delays the query."""
DEADLINES = {"connect_timeout": 5, "read_timeout": 10}
"""Seconds. Less: a slow network looks like an outage. More: no bolt gets a turn while one call hangs."""
_BUSY = re.compile(r"Throttl|OverLimit|TooManyRequests|RequestLimitExceeded|SlowDown|RequestTimeout|Unavailable")
T = TypeVar("T")


class SqsQueue:
    """``calls``: how many are made at once, at most. Raises OptionError if there is no boto3, region or profile.

    Every method asks SQS, blocking; it raises RetryLater if the queue is busy or does not answer, WorldError if it is
    not there or refuses the credentials.
    """

    def __init__(self, options: SqsOptions, calls: int):
        self._options = options
        boto3, config = package("boto3", "SqsSpout", "sqs"), package("botocore.config", "SqsSpout", "sqs")
        self._errors = package("botocore.exceptions", "SqsSpout", "sqs")
        # The client must not retry: the engine waits, while other spouts go on.
        settings = config.Config(retries={"total_max_attempts": 1}, max_pool_connections=calls, **DEADLINES)
        try:
            session = boto3.session.Session(
                profile_name=options.profile_name or None, region_name=options.region_name or None
            )
            self._client = session.client("sqs", endpoint_url=options.endpoint_url or None, config=settings)
        except (self._errors.BotoCoreError, ValueError) as error:
            raise OptionError(
                f"SqsSpout: boto3 makes no client: {_said(error)}. Set sqs.region_name, sqs.endpoint_url and "
                f"sqs.profile_name, or AWS's own variables and files, on every executor. Given: {options!r}",
                code="PYSTORM_INVALID_OPTION",
            ) from error
        self._threads = ThreadPoolExecutor(calls, thread_name_prefix="pystorm-sqs")
        self._url = ""

    def visibility_timeout(self) -> int:
        """Returns the queue's own time-out in seconds. Call it first: it finds the queue."""
        name = self._options.queue
        url = name if "://" in name else self._called("get_queue_url", QueueName=name)["QueueUrl"]
        found = self._called("get_queue_attributes", QueueUrl=url, AttributeNames=["VisibilityTimeout"])
        self._url = url
        return int(found["Attributes"]["VisibilityTimeout"])

    def receive(self, count: int, wait_seconds: int, visibility_seconds: int) -> list[Any]:
        """Returns at most so many messages, by several calls at once if one is too few. A call that fails hides no
        messages of the others: it is made again soon."""
        raised: list[RetryLater] = []

        def ask(most: int) -> list[Any]:
            try:
                answer = self._called(
                    "receive_message",
                    QueueUrl=self._url,
                    MaxNumberOfMessages=most,
                    VisibilityTimeout=visibility_seconds,
                    WaitTimeSeconds=wait_seconds,
                    MessageSystemAttributeNames=["SentTimestamp", "ApproximateReceiveCount", "MessageGroupId"],
                    MessageAttributeNames=["All"],
                )
            except RetryLater as error:
                raised.append(error)
                return []
            return answer.get("Messages", [])

        counts = [min(MOST, count - at) for at in range(0, count, MOST)]
        found = [each for answer in self._each(ask, counts) for each in answer]
        if raised and not found:
            raise raised[0]
        return found

    def delete(self, handles: Iterable[str]) -> None:
        self._send("delete_message_batch", handles)

    def keep(self, handles: Iterable[str], seconds: int) -> None:
        """Keeps messages from others for so many seconds from now on; 0 gives them back."""
        self._send("change_message_visibility_batch", handles, VisibilityTimeout=seconds)

    def close(self) -> None:
        self._threads.shutdown(wait=False)
        self._client.close()

    def _send(self, method: str, handles: Iterable[str], **more: Any) -> None:
        """An entry that fails by its sender's fault has an expired receipt: its message comes again, and is known. The
        others are sent again."""
        entries = [{"Id": str(at), "ReceiptHandle": handle, **more} for at, handle in enumerate(handles)]

        def send(piece: Sequence[Any]) -> list[Any]:
            return self._called(method, QueueUrl=self._url, Entries=piece).get("Failed", [])

        for _ in range(ATTEMPTS):
            pieces = [entries[at : at + MOST] for at in range(0, len(entries), MOST)]
            failed = [each for answer in self._each(send, pieces) for each in answer]
            again = {each["Id"] for each in failed if not each["SenderFault"]}
            entries = [each for each in entries if each["Id"] in again]
            if not entries:
                return
        raise RetryLater(PAUSE_SECONDS, f"{method}: {len(entries)} entries failed {ATTEMPTS} times: {failed[0]}")

    def _each(self, call: Callable[[Any], T], given: Sequence[Any]) -> Iterable[T]:
        if len(given) == 1:
            return [call(given[0])]
        # Order: all have ended before one raises. Not Executor.map: RetryLater must not leave a generator.
        begun = [self._threads.submit(call, each) for each in given]
        wait(begun)
        return [each.result() for each in begun]

    def _called(self, method: str, **arguments: Any) -> Any:
        try:
            return getattr(self._client, method)(**arguments)
        except self._errors.ClientError as error:
            status, code = error.response["ResponseMetadata"]["HTTPStatusCode"], error.response["Error"]["Code"]
            if status >= 500 or status == 429 or _BUSY.search(code):
                raise RetryLater(PAUSE_SECONDS, str(error)) from None
            raise self._refused(error) from error
        except (self._errors.ConnectionError, self._errors.HTTPClientError) as error:
            raise RetryLater(PAUSE_SECONDS, str(error)) from None
        except self._errors.BotoCoreError as error:
            raise self._refused(error) from error

    def _refused(self, error: Exception) -> WorldError:
        return WorldError(
            f"SQS does not give messages of this queue: {_said(error)}. See that the queue is there, in this region "
            "and account, and that the credentials of every executor allow sqs:GetQueueUrl, sqs:GetQueueAttributes, "
            f"sqs:ReceiveMessage, sqs:DeleteMessage and sqs:ChangeMessageVisibility. Given: {self._options!r}",
            code="PYSTORM_EXTERNAL_FAILURE",
        )


def _said(error: Exception) -> str:
    return str(error).rstrip(".")
