"""SageMaker's runtime API by boto3, which signs, retries and keeps connections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from constructs_triton.client.invocation_errors import build_invocation_error, read_model_message
from constructs_triton.client.model_index import ModelIndex
from constructs_triton.client.transport import Invocation, Reply
from constructs_triton.errors import InvalidValueError, InvocationError, MissingDependencyError

if TYPE_CHECKING:
    import boto3
    from botocore.config import Config

__all__ = ["SageMakerTransport", "default_config"]

# A container has 60 s to answer; the AWS documentation asks for a socket time-out of 70 s.
READ_TIMEOUT_SECONDS = 70.0
CONNECT_TIMEOUT_SECONDS = 5.0
MAX_ATTEMPTS = 4
MAX_POOL_CONNECTIONS = 50

LOOPBACK_HOSTS = {"127.0.0.1", "::1", "localhost"}
# botocore insists on a Region; a server on this machine does not look at it.
LOOPBACK_REGION = "us-east-1"


def default_config(
    *, read_timeout_seconds: float = READ_TIMEOUT_SECONDS, max_attempts: int = MAX_ATTEMPTS
) -> Config:
    """botocore's configuration for inference; ``max_attempts`` counts the first one too.

    Retry mode "legacy" is deliberate: of botocore's modes it alone retries every status 429, and so a
    ``ModelNotReadyException`` while a multi-model endpoint loads a cold model.
    """
    from botocore.config import Config  # noqa: PLC0415 - boto3 is loaded at the first call

    return Config(
        read_timeout=read_timeout_seconds,
        connect_timeout=CONNECT_TIMEOUT_SECONDS,
        max_pool_connections=MAX_POOL_CONNECTIONS,
        retries={"mode": "legacy", "total_max_attempts": max_attempts},
    )


class SageMakerTransport:
    """InvokeEndpoint and its streaming sister on one endpoint.

    ``endpoint_url`` replaces the address of the service, for instance by that of a local run, which needs
    neither a Region nor credentials: on loopback requests go unsigned. ``config`` replaces
    ``default_config()``. boto3 is loaded, and credentials are looked for, at the first call.
    """

    def __init__(
        self,
        endpoint_name: str,
        *,
        session: boto3.Session | None = None,
        endpoint_url: str | None = None,
        region_name: str | None = None,
        config: Config | None = None,
    ) -> None:
        if endpoint_url is not None and not endpoint_url.startswith(("http://", "https://")):
            raise InvalidValueError(
                f"endpoint_url: must start with http:// or https://, got {endpoint_url!r}; add it"
            )
        self.endpoint_name = endpoint_name
        self._session = session
        self._endpoint_url = endpoint_url
        self._region_name = region_name
        self._config = config
        self._clients: dict[str, Any] = {}

    def invoke(self, invocation: Invocation) -> Reply:
        response = self.call("invoke_endpoint", **self._arguments(invocation))
        body = self.read_body(response["Body"])
        return Reply(body, response.get("ContentType", ""), _metadata(response))

    def stream(self, invocation: Invocation) -> Iterator[bytes]:
        response = self.call("invoke_endpoint_with_response_stream", **self._arguments(invocation))
        events = iter(response["Body"])
        while (event := self._guard(lambda: next(events, None))) is not None:
            yield _read_part(self.endpoint_name, event)

    def call(self, operation: str, *, service: str = "sagemaker-runtime", **arguments: Any) -> dict[str, Any]:
        """Any operation of the runtime API or of S3, with failures as ``InvocationError``."""
        client = self.client(service)
        result: dict[str, Any] = self._guard(lambda: getattr(client, operation)(**arguments))
        return result

    def read_body(self, body: Any) -> bytes:
        """All of a streaming body; a connection that breaks is an ``InvocationError`` too."""
        data: bytes = self._guard(body.read)
        return data

    def read_index(self, uri: str) -> ModelIndex:
        """The index of a multi-model endpoint's archives, from S3."""
        s3 = self.client("s3")
        index: ModelIndex = self._guard(lambda: ModelIndex.from_s3(uri, s3))
        return index

    def client(self, service: str) -> Any:
        """The boto3 client of ``service``, made once."""
        if service not in self._clients:
            session = self._session or self._guard(_import_boto3().Session)
            self._clients[service] = self._guard(lambda: self._make_client(session, service))
        return self._clients[service]

    def _make_client(self, session: boto3.Session, service: str) -> Any:
        config = self._config or default_config()
        # The address of a local run is that of the runtime API only.
        if service != "sagemaker-runtime" or self._endpoint_url is None:
            return session.client(service, region_name=self._region_name, config=config)
        region = self._region_name or session.region_name
        if urlsplit(self._endpoint_url).hostname in LOOPBACK_HOSTS:
            config, region = _unsigned(config), region or LOOPBACK_REGION
        return session.client(service, endpoint_url=self._endpoint_url, region_name=region, config=config)

    def _arguments(self, invocation: Invocation) -> dict[str, Any]:
        return {
            "EndpointName": self.endpoint_name,
            "Body": invocation.body,
            "ContentType": invocation.content_type,
            **invocation.options,
        }

    def _guard(self, action: Any) -> Any:
        """Run ``action``; what botocore raises becomes an error of ours."""
        from botocore import exceptions  # noqa: PLC0415 - as boto3
        from urllib3.exceptions import HTTPError  # noqa: PLC0415

        try:
            return action()
        except exceptions.ParamValidationError as error:
            raise InvalidValueError(
                f"endpoint {self.endpoint_name}: an option is unknown or malformed, got {error}; "
                "options are those of boto3's call"
            ) from None
        except exceptions.ClientError as error:
            raise _from_response(self.endpoint_name, error.response) from error
        except (exceptions.BotoCoreError, HTTPError) as error:
            raise build_invocation_error(
                self.endpoint_name, "the request failed", code=type(error).__name__, model_message=str(error)
            ) from error


def _unsigned(config: Config) -> Config:
    from botocore import UNSIGNED  # noqa: PLC0415 - as boto3
    from botocore.config import Config  # noqa: PLC0415

    return config.merge(Config(signature_version=UNSIGNED))


def _import_boto3() -> Any:
    try:
        import boto3  # noqa: PLC0415 - half a second that only the first call should pay
    except ImportError:
        raise MissingDependencyError(
            "boto3: is not installed, got ImportError; pip install 'constructs-triton[client]'"
        ) from None
    return boto3


def _metadata(response: Mapping[str, Any]) -> dict[str, Any]:
    about = response.get("ResponseMetadata", {})
    fields = {k: v for k, v in response.items() if k not in {"Body", "ContentType", "ResponseMetadata"}}
    return fields | {"RequestId": about.get("RequestId"), "RetryAttempts": about.get("RetryAttempts", 0)}


def _from_response(endpoint: str, response: Mapping[str, Any]) -> InvocationError:
    error, about = response.get("Error", {}), response.get("ResponseMetadata", {})
    code = str(error.get("Code", ""))
    message = response.get("OriginalMessage")
    return build_invocation_error(
        endpoint,
        "the model failed" if code == "ModelError" else "the request was refused",
        code=code,
        status=response.get("OriginalStatusCode") or about.get("HTTPStatusCode"),
        model_message=read_model_message(message.encode()) if message else error.get("Message"),
        request_id=about.get("RequestId"),
    )


def _read_part(endpoint: str, event: Mapping[str, Any]) -> bytes:
    if "PayloadPart" in event:
        return bytes(event["PayloadPart"].get("Bytes", b""))
    name, fault = next(iter(event.items()))
    raise build_invocation_error(
        endpoint, "the stream broke off", code=name, model_message=str(fault.get("Message", fault))
    )
