"""What of an endpoint is encrypted with KMS keys, according to its options."""

from __future__ import annotations

from collections.abc import Iterable

from constructs_triton.cdk.endpoint.properties import EndpointOptions
from constructs_triton.cdk.options.async_inference import async_inference_data
from constructs_triton.cdk.options.core_dump import CoreDump, core_dump_data
from constructs_triton.cdk.options.data_capture import data_capture_data
from constructs_triton.cdk.options.host_options import HostOptions
from constructs_triton.cdk.permissions.encrypted_data import DataUnderKeys

__all__ = ["endpoint_data", "host_data"]


def host_data(options: HostOptions) -> list[DataUnderKeys]:
    """The storage volumes of an endpoint, if they have a key."""
    key = options["encryption_key"]
    return [] if key is None else [DataUnderKeys("storage volumes", [("encryption_key", key)])]


def endpoint_data(options: EndpointOptions, core_dumps: Iterable[CoreDump | None]) -> list[DataUnderKeys]:
    """The data of an endpoint besides its models, without what has no key."""
    capture, asynchronous = options["data_capture"], options["async_inference"]
    found = [
        *host_data(options),
        *([] if capture is None else [data_capture_data(capture)]),
        *([] if asynchronous is None else async_inference_data(asynchronous)),
        *(core_dump_data(each) for each in core_dumps if each is not None),
    ]
    return [each for each in found if each.keys]
