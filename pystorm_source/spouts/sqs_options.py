"""Options of SqsSpout."""

from typing import Annotated

import msgspec
from msgspec import Meta

from pystorm_source.options import Options
from pystorm_source.options.http_address import check_address


class SqsOptions(Options, frozen=True, kw_only=True):
    """Options of SqsSpout, with boto3's names. Credentials are not options: boto3 finds them as always."""

    further = (
        *("sqs.region_name", "sqs.endpoint_url", "sqs.profile_name"),
        *("sqs.visibility_timeout", "sqs.wait_time_seconds"),
    )

    queue: Annotated[
        str, Meta(min_length=1, description="URL of the queue, or its name in the credentials' account.")
    ] = msgspec.field(name="sqs.queue")
    region_name: Annotated[str, Meta(description="AWS region. Unset: boto3's default.")] = msgspec.field(
        name="sqs.region_name", default=""
    )
    endpoint_url: Annotated[str, Meta(description="URL of a VPC endpoint or local server. Unset: AWS's.")] = (
        msgspec.field(name="sqs.endpoint_url", default="")
    )
    profile_name: Annotated[str, Meta(description="AWS profile on every executor. Unset: boto3's default.")] = (
        msgspec.field(name="sqs.profile_name", default="")
    )
    visibility_timeout: Annotated[
        Annotated[int, Meta(ge=1, le=43_200)] | None,
        Meta(description="Seconds that a received message stays hidden. Unset: the queue's setting."),
    ] = msgspec.field(name="sqs.visibility_timeout", default=None)
    wait_time_seconds: Annotated[
        int,
        Meta(ge=0, le=1, description="Seconds to wait at an empty queue. 0 may miss messages."),
    ] = msgspec.field(name="sqs.wait_time_seconds", default=1)

    def __post_init__(self) -> None:
        instead = "boto3 finds credentials in AWS's variables and files"
        if "://" in self.queue:
            check_address("sqs.queue", self.queue, instead, "a queue's name, or its URL with https://")
        if self.endpoint_url:
            check_address("sqs.endpoint_url", self.endpoint_url, instead, "a URL with http:// or https:// and a host")
