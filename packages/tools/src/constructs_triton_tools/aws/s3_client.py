"""A client of S3, for code that works with clients of boto3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from constructs_triton_client.transports.sagemaker_transport import LOOPBACK_HOSTS
from constructs_triton_core.aws_reader import AwsReader

if TYPE_CHECKING:
    import boto3


def s3_client(session: boto3.Session) -> Any:
    """Return a client of S3. A folder in its place on this machine needs no credentials."""
    from botocore import UNSIGNED

    client = AwsReader(session).client("s3")
    is_local = urlsplit(client.meta.endpoint_url).hostname in LOOPBACK_HOSTS
    if is_local and session.get_credentials() is None:
        return AwsReader(session, signature_version=UNSIGNED).client("s3")
    return client
