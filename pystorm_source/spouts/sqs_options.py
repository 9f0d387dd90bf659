"""Options of SqsSpout."""

from typing import Annotated

import msgspec
from msgspec import Meta

from pystorm_source.options import Options


class SqsOptions(Options, frozen=True, kw_only=True):
    """Options of SqsSpout, by the names of boto3. Credentials have none: boto3 finds them as always."""

    further = (
        *("sqs.region_name", "sqs.endpoint_url", "sqs.profile_name"),
        *("sqs.visibility_timeout", "sqs.wait_time_seconds"),
    )

    queue: Annotated[
        str, Meta(min_length=1, description="Queue to read: its URL, or its name in the account of the credentials.")
    ] = msgspec.field(name="sqs.queue")
    region_name: Annotated[str, Meta(description="AWS region of the queue; without it boto3's own default.")] = (
        msgspec.field(name="sqs.region_name", default="")
    )
    endpoint_url: Annotated[
        str, Meta(description="URL to send requests to, of a VPC endpoint or a local server; without it that of AWS.")
    ] = msgspec.field(name="sqs.endpoint_url", default="")
    profile_name: Annotated[
        str, Meta(description="Profile of AWS's configuration files on every executor; without it boto3's own default.")
    ] = msgspec.field(name="sqs.profile_name", default="")
    visibility_timeout: Annotated[
        Annotated[int, Meta(ge=1, le=43_200)] | None,
        Meta(description="Seconds for which a received message is kept from others; without it the queue's own."),
    ] = msgspec.field(name="sqs.visibility_timeout", default=None)
    wait_time_seconds: Annotated[
        int,
        Meta(ge=0, le=1, description="Seconds that a call waits at an empty queue. With 0 it may overlook messages."),
    ] = msgspec.field(name="sqs.wait_time_seconds", default=1)
