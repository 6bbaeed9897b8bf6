"""Finds the archive of a model by the model's name, on an endpoint in AWS and on one of a local run
alike.

An endpoint does not know its index. The prefix of its archives is in the description of its model,
and the index is below that prefix. A local run answers with the index itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import quote, urlsplit

from constructs_triton_client.errors import build_invocation_error
from constructs_triton_client.transports.sagemaker_transport import (
    LOOPBACK_HOSTS,
    SageMakerTransport,
)
from constructs_triton_client.transports.transport import Transport
from constructs_triton_core.bounded_json import parse_bounded_json
from constructs_triton_core.errors import InvalidValueError, InvocationError
from constructs_triton_core.model_index import (
    INDEX_FILE,
    MAXIMUM_INDEX_BYTES,
    ModelIndex,
    is_archive,
)

__all__ = ["ModelNames", "find_index"]

_LOCAL_TIMEOUT_SECONDS = 10.0
_FORBIDDEN = 403
_NOT_FOUND = 404
#: Only the gateway of a local run answers with one of these members.
_TARGET_MODELS = "target_models"
_PREFIX = "prefix"


class ModelNames:
    """The names of the models of one endpoint.

    Args:
        transport: Transport of the endpoint.
        index: Maps model names to archives. Default: the endpoint's own index, which is read for
            the first name that is not an archive's. A transport other than SageMaker's has none,
            and names are sent as they are.
    """

    def __init__(self, transport: Transport, index: ModelIndex | None = None) -> None:
        self._transport = transport
        self.index = index

    def archive_of(self, name: object) -> str:
        """Return the ``TargetModel`` of a request: the archive of a model.

        Args:
            name: Name of a model, or of an archive (``.tar.gz``), which is returned unchanged.

        Raises:
            InvalidValueError: the name is not a string, the endpoint has no model of this name, or
                no index.
            InvocationError: the index cannot be read.
        """
        if not isinstance(name, str) or not name:
            raise InvalidValueError(
                f"target_model: must be the name of a model or archive, got {name!r}; "
                'pass a string such as "resnet" or "resnet.tar.gz"'
            )
        if (
            self.index is None
            and not is_archive(name)
            and isinstance(self._transport, SageMakerTransport)
        ):
            self.index = find_index(self._transport, name)
        return name if self.index is None else self.index.target_model(name)

    def resolved(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return parameters of InvokeEndpoint whose ``TargetModel``, if there is one, is an
        archive.

        Args:
            options: Parameters of InvokeEndpoint.

        Raises:
            InvalidValueError, InvocationError: as ``archive_of``.
        """
        if "TargetModel" not in options:
            return dict(options)
        return {**options, "TargetModel": self.archive_of(options["TargetModel"])}


def find_index(transport: SageMakerTransport, name: str) -> ModelIndex:
    """Read the index of an endpoint, of the first multi-model variant if it has several.

    Calls DescribeEndpoint, DescribeEndpointConfig and DescribeModel, and reads ``index.json`` from
    S3. The gateway of a local run is asked for the index instead.

    Args:
        transport: Transport of the endpoint.
        name: The name that is looked up, for messages.

    Raises:
        InvalidValueError: the endpoint is not a multi-model endpoint, or has no index.
        InvocationError: the endpoint cannot be described, or the index cannot be read.
    """
    try:
        prefix, index = _prefix_and_index(transport)
    except InvocationError as error:
        # SageMaker denies with status 400, S3 with 403, also for an index that does not exist.
        said = error.model_message or ""
        if error.status != _FORBIDDEN and "not authorized to perform" not in said:
            raise
        error.args = (
            (
                f"target_model: the index of endpoint {transport.endpoint_name} may not be read to "
                f'find "{name}", got {error.model_message}; allow sagemaker:DescribeEndpoint, '
                "sagemaker:DescribeEndpointConfig, sagemaker:DescribeModel and s3:GetObject of "
                "index.json, or give the S3 URI of index.json as index"
            ),
        )
        raise

    if index is not None:
        return index
    if prefix is None:
        raise InvalidValueError(
            f"target_model: endpoint {transport.endpoint_name} is not a multi-model endpoint, got "
            f'"{name}"; remove target_model'
        )
    raise InvalidValueError(
        f'target_model: {prefix} has no {INDEX_FILE}, so the archive of "{name}" is unknown; use '
        "the name of the archive (.tar.gz), or add models with TritonModelRepository or "
        "`constructs-triton models add`"
    )


def _prefix_and_index(transport: SageMakerTransport) -> tuple[str | None, ModelIndex | None]:
    """Return where the archives of an endpoint are, and the index there.

    The prefix is ``None`` if the endpoint is not a multi-model endpoint, or if a local run has
    answered with the index itself.
    """
    local = _ask_local_run(transport)
    if isinstance(local, ModelIndex):
        return None, local
    if local is not None:
        return local.get(_PREFIX), None

    prefix = _prefix_of(transport)
    index = _read_below(transport, prefix) if prefix else None
    return prefix, index


# --- an endpoint in AWS ---------------------------------------------------------------------------


def _prefix_of(transport: SageMakerTransport) -> str | None:
    """Return the S3 prefix of the archives of an endpoint;
    ``None`` if it is not a multi-model endpoint.
    """

    def describe(operation: str, **request: str) -> dict[str, Any]:
        return transport.call(operation, service="sagemaker", **request)

    endpoint = describe("describe_endpoint", EndpointName=transport.endpoint_name)
    config = describe("describe_endpoint_config", EndpointConfigName=endpoint["EndpointConfigName"])
    for variant in config["ProductionVariants"]:
        if "ModelName" not in variant:
            continue  # an endpoint of inference components
        model = describe("describe_model", ModelName=variant["ModelName"])
        container: dict[str, Any] = model.get("PrimaryContainer") or next(
            iter(model.get("Containers", [])), {}
        )
        if container.get("Mode") == "MultiModel":
            return str(container["ModelDataUrl"])
    return None


def _read_below(transport: SageMakerTransport, prefix: str) -> ModelIndex | None:
    """Return the index below an S3 prefix; ``None`` if there is none."""
    try:
        return transport.read_index(f"{prefix.rstrip('/')}/")
    except InvocationError as error:
        if error.status == _NOT_FOUND:
            return None
        raise


# --- a local run ----------------------------------------------------------------------------------


def _ask_local_run(transport: SageMakerTransport) -> ModelIndex | dict[str, Any] | None:
    """Return the index of an endpoint of a local run, or what the run says of an endpoint without
    one.

    ``None`` if the runtime API is not on this machine, or is not that of a local run.
    """
    address = urlsplit(transport.client("sagemaker-runtime").meta.endpoint_url)
    if address.scheme != "http" or address.hostname not in LOOPBACK_HOSTS:
        return None
    path = f"/endpoints/{quote(transport.endpoint_name)}/{INDEX_FILE}"
    try:
        with closing(
            HTTPConnection(address.hostname, address.port, timeout=_LOCAL_TIMEOUT_SECONDS)
        ) as caller:
            caller.request("GET", path)
            response = caller.getresponse()
            body = response.read(MAXIMUM_INDEX_BYTES + 1)
        answer = parse_bounded_json(body)
    except (OSError, HTTPException, ValueError):
        return None
    if not isinstance(answer, dict):
        return None
    if "Message" in answer and response.headers.get("x-amzn-errortype"):
        raise build_invocation_error(
            transport.endpoint_name,
            "the request was rejected",
            code=response.headers["x-amzn-errortype"],
            status=response.status,
            model_message=answer["Message"],
        )
    if _TARGET_MODELS in answer:
        return ModelIndex.from_json(body, f"http://{address.netloc}{path}")
    return answer if _PREFIX in answer else None
