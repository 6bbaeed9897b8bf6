"""SageMaker's runtime API over boto3, which signs and retries requests and reuses connections."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from constructs_triton_client.errors import build_invocation_error, read_model_message
from constructs_triton_client.transports.bearer_token import LONGEST_SECONDS, sign_bearer_token
from constructs_triton_client.transports.bounded_reader import MAXIMUM_RESPONSE_BYTES, BoundedReader
from constructs_triton_client.transports.transport import Invocation, Reply, checked_url
from constructs_triton_core.errors import (
    ConstructsTritonError,
    InvalidValueError,
    InvocationError,
    MissingDependencyError,
)
from constructs_triton_core.facts.limits import RangeLimit
from constructs_triton_core.limit_checks import check_range
from constructs_triton_core.model_index import INDEX_FILE, ModelIndex
from constructs_triton_core.spelling import did_you_mean

if TYPE_CHECKING:
    import boto3
    from botocore.config import Config

__all__ = ["LOOPBACK_HOSTS", "READ_TIMEOUT_SECONDS", "SageMakerTransport", "default_config"]

# A container has 60 s to answer; the AWS documentation asks for a socket timeout of 70 s.
READ_TIMEOUT_SECONDS = 70.0
CONNECT_TIMEOUT_SECONDS = 5.0
MAX_ATTEMPTS = 4
MAX_POOL_CONNECTIONS = 50

# The service's codes for a failure within the model, before and in the middle of a stream.
_MODEL_CODES = {"ModelError", "ModelStreamError"}
# No body is that long; int() of more digits takes quadratic time.
_MOST_DIGITS = 18
# boto3's sessions are not safe to use from several threads, and each client takes 0.1 s of the
# processor.
_CREATION = threading.Lock()
LOOPBACK_HOSTS = {"127.0.0.1", "::1", "localhost"}
# botocore requires a Region; a server on this machine ignores it.
LOOPBACK_REGION = "us-east-1"


def default_config(
    *, read_timeout_seconds: float = READ_TIMEOUT_SECONDS, max_attempts: int = MAX_ATTEMPTS
) -> Config:
    """Return botocore's configuration for inference.

    The retry mode is "legacy" because it is botocore's only mode that retries every status 429,
    such as ``ModelNotReadyException`` while a multi-model endpoint loads a model.

    Args:
        read_timeout_seconds: Longest pause within a response, in seconds. A container may take 60 s
            to answer.
        max_attempts: Number of attempts, including the first one.

    Raises:
        InvalidValueError: a number is below its minimum, or is none.
    """
    from botocore.config import Config  # noqa: PLC0415 - boto3 is imported at the first call

    check_range("read_timeout_seconds", read_timeout_seconds, RangeLimit(0.001, None, "seconds"))
    check_range("max_attempts", max_attempts, RangeLimit(1, None))
    return Config(
        read_timeout=read_timeout_seconds,
        connect_timeout=CONNECT_TIMEOUT_SECONDS,
        max_pool_connections=MAX_POOL_CONNECTIONS,
        retries={"mode": "legacy", "total_max_attempts": max_attempts},
    )


class SageMakerTransport:
    """Calls InvokeEndpoint and InvokeEndpointWithResponseStream on one endpoint.

    boto3 is imported, and credentials are read, at the first call.

    Args:
        endpoint_name: Name of the SageMaker endpoint.
        session: boto3 session with credentials. Default: a new one, which reads the environment.
        endpoint_url: Address of the runtime API, for example that of ``constructs-triton local
            up``. Requests to an address on loopback are not signed, so they need neither a Region
            nor credentials; S3 is called there too, unless ``AWS_ENDPOINT_URL_S3`` or
            ``AWS_ENDPOINT_URL`` is set. Default: AWS's.
        region_name: Region of the endpoint. Default: that of the session.
        config: botocore's configuration. Default: ``default_config()``.
        maximum_response_bytes: A longer response, stream or result of an asynchronous inference
            raises ``InvocationError``. SageMaker's own limits are lower, except for asynchronous
            inference.
        invocation: The request to send.

    Raises:
        InvalidValueError: ``endpoint_name`` is an ARN, or ``endpoint_url`` or ``session`` is of
            another form.
    """

    def __init__(
        self,
        endpoint_name: str,
        *,
        session: boto3.Session | None = None,
        endpoint_url: str | None = None,
        region_name: str | None = None,
        config: Config | None = None,
        maximum_response_bytes: int = MAXIMUM_RESPONSE_BYTES,
    ) -> None:
        if session is not None and not hasattr(session, "client"):
            raise InvalidValueError(
                "session: must be a boto3.Session, "
                f"got {type(session).__name__}; write boto3.Session()"
            )
        if str(endpoint_name).startswith("arn:"):
            raise InvalidValueError(
                f'endpoint_name: must be a name, got "{endpoint_name}"; '
                f'write "{str(endpoint_name).rpartition("/")[2]}"'
            )
        self.endpoint_name = endpoint_name
        self._session = session
        self._endpoint_url = (
            None if endpoint_url is None else checked_url("endpoint_url", endpoint_url)
        )
        self._region_name = region_name
        self._config = config
        self._reader = BoundedReader(f"endpoint {endpoint_name}", maximum_response_bytes)
        self._clients: dict[tuple[str, int], Any] = {}

    def prepare(self) -> None:
        """Import boto3 and create its client, which the first call otherwise does;
        errors as ``invoke``.
        """
        self.client("sagemaker-runtime")

    def invoke(self, invocation: Invocation) -> Reply:
        """Call InvokeEndpoint.

        Raises:
            InvalidValueError: an option is not a parameter of InvokeEndpoint.
            InvocationError: the request failed.
        """
        response = self.call("invoke_endpoint", **self._arguments(invocation))
        return Reply(self.read_body(response), response.get("ContentType", ""), _metadata(response))

    def stream(self, invocation: Invocation) -> Iterator[bytes]:
        """Call InvokeEndpointWithResponseStream and yield its parts; errors as ``invoke``."""
        response = self.call("invoke_endpoint_with_response_stream", **self._arguments(invocation))
        events = iter(response["Body"])
        try:
            while (event := self._guard(lambda: next(events, None))) is not None:
                if "PayloadPart" not in event:
                    raise build_invocation_error(
                        self.endpoint_name,
                        "the stream has an unknown event",
                        code=str(next(iter(event), "no name")),
                    )
                yield event["PayloadPart"].get("Bytes", b"")
        finally:
            response["Body"].close()

    def call(
        self, operation: str, *, service: str = "sagemaker-runtime", **arguments: Any
    ) -> dict[str, Any]:
        """Call an operation of an AWS service; errors as ``invoke``.

        Args:
            operation: Name of the method of the boto3 client, such as ``"invoke_endpoint"``.
            service: boto3's name of the service.
            **arguments: Arguments of the method.
        """
        client = self.client(service)
        result: dict[str, Any] = self._guard(lambda: getattr(client, operation)(**arguments))
        return result

    def read_body(self, response: Mapping[str, Any]) -> bytes:
        """Read the body of a response to its end; errors as ``invoke``.

        Args:
            response: What ``call`` returned.
        """
        body = response["Body"]
        try:
            data: bytes = self._guard(
                lambda: self._reader.read_whole(body.read, _announced_length(response))
            )
        except ConstructsTritonError:
            body.close()
            raise
        return data

    def read_index(self, uri: str) -> ModelIndex:
        """Read the ``index.json`` of a multi-model endpoint from S3.

        Args:
            uri: ``s3://bucket/key`` of the index, or the prefix above it, without ``index.json``.

        Raises:
            InvalidValueError: the URI is malformed, or the object is not an index.
            InvocationError: S3 cannot be read.
        """
        s3 = self.client("s3")
        uri = uri if uri.endswith(".json") else f"{uri.rstrip('/')}/{INDEX_FILE}"
        index: ModelIndex = self._guard(lambda: ModelIndex.from_s3(uri, s3))
        return index

    def bearer_token(self, valid_seconds: int = LONGEST_SECONDS) -> str:
        """Return an API key for SageMaker's OpenAI path. It is signed on your machine; nothing is
        sent.

        Its owner may call this path of each endpoint in the Region that your credentials may call.

        Args:
            valid_seconds: Seconds until it expires, at most 43,200. It expires with temporary
                credentials.

        Raises:
            InvalidValueError: ``valid_seconds`` is out of range.
            InvocationError: there are no credentials, or no Region.
        """
        region = self.client("sagemaker-runtime").meta.region_name
        session = self._session or _import_boto3().Session()
        return str(
            self._guard(lambda: sign_bearer_token(session.get_credentials(), region, valid_seconds))
        )

    def client(self, service: str) -> Any:
        """Return the boto3 client of ``service``, created at the first use.

        Args:
            service: boto3's name of the service, such as ``"s3"``.
        """
        # Processes that share a connection receive each other's responses.
        key = (service, os.getpid())
        if key not in self._clients:
            from constructs_triton_client.transports.bounded_connections import bound_client  # noqa: PLC0415 - see _import_boto3

            with _CREATION:
                if key not in self._clients:
                    session = self._session or self._guard(_import_boto3().Session)
                    client = self._guard(lambda: self._create_client(session, service))
                    bound_client(client, self._reader)
                    self._clients[key] = client
        return self._clients[key]

    def _create_client(self, session: boto3.Session, service: str) -> Any:
        """Create the boto3 client of a service, for AWS or for a local run."""
        config = self._config or default_config()
        url = self._endpoint_url
        is_loopback = url is not None and urlsplit(url).hostname in LOOPBACK_HOSTS
        # Elsewhere endpoint_url is the address of the runtime API only, never of S3.
        has_s3_address = bool({"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"} & os.environ.keys())
        serves_all = is_loopback and not has_s3_address
        if url is None or (service != "sagemaker-runtime" and not serves_all):
            return session.client(service, region_name=self._region_name, config=config)

        region = self._region_name or session.region_name
        if is_loopback:
            config = _unsigned(config)
            region = region or LOOPBACK_REGION
        return session.client(service, endpoint_url=url, region_name=region, config=config)

    def _arguments(self, invocation: Invocation) -> dict[str, Any]:
        """Return an invocation as the arguments of boto3."""
        return {
            "EndpointName": self.endpoint_name,
            "Body": invocation.body,
            "ContentType": invocation.content_type,
            **invocation.options,
        }

    def _guard(self, action: Any) -> Any:
        """Run ``action``, and raise all errors as errors of this package."""
        from botocore import exceptions  # noqa: PLC0415 - see _import_boto3

        try:
            return action()
        except ConstructsTritonError:
            raise
        except exceptions.ParamValidationError as error:
            text = " ".join(str(error).split())
            raise InvalidValueError(
                f"endpoint {self.endpoint_name}: an option is unknown or has the wrong type, got "
                f"{text}; {_parameter_hint(text)}"
            ) from None
        except exceptions.ClientError as error:
            raise _from_response(self.endpoint_name, error.response) from error
        except (
            Exception
        ) as error:  # a broken response raises errors of botocore, urllib3 and Python itself
            if isinstance(cause := getattr(error, "kwargs", {}).get("error"), InvocationError):
                raise cause from error  # botocore wraps what a connection raises
            raise build_invocation_error(
                self.endpoint_name,
                "the request failed",
                code=type(error).__name__,
                model_message=str(error),
            ) from error


def _parameter_hint(text: str) -> str:
    """Return the hint for botocore's text about a parameter that is unknown
    or has the wrong type.
    """
    unknown = re.search(r'Unknown parameter in input: "([^"]+)", must be one of: ([\w, ]+)', text)
    otherwise = "use the parameters of boto3's method"
    return did_you_mean(unknown[1], unknown[2].split(", "), otherwise) if unknown else otherwise


def _announced_length(response: Mapping[str, Any]) -> int | None:
    headers = response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    length = str(headers.get("content-length", ""))
    if "transfer-encoding" in headers or not length.isdecimal() or len(length) > _MOST_DIGITS:
        return None
    return int(length)


def _unsigned(config: Config) -> Config:
    from botocore import UNSIGNED  # noqa: PLC0415 - see _import_boto3
    from botocore.config import Config  # noqa: PLC0415

    # The name of a bucket in front of localhost would not resolve.
    return config.merge(Config(signature_version=UNSIGNED, s3={"addressing_style": "path"}))


def _import_boto3() -> Any:
    """Return boto3; raises ``MissingDependencyError`` if it is not installed."""
    try:
        import boto3  # noqa: PLC0415 - takes 0.5 s, so only the first call imports it
    except ImportError:
        raise MissingDependencyError(
            "boto3 is not installed; run `pip install 'constructs-triton-client[aws]'`"
        ) from None
    return boto3


def _metadata(response: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a response without its body, and those about its request."""
    metadata = response.get("ResponseMetadata", {})
    fields = {
        k: v for k, v in response.items() if k not in {"Body", "ContentType", "ResponseMetadata"}
    }
    return fields | {
        "RequestId": metadata.get("RequestId"),
        "RetryAttempts": metadata.get("RetryAttempts", 0),
    }


def _from_response(endpoint: str, response: Mapping[str, Any]) -> InvocationError:
    """Return the error that the response of SageMaker describes."""
    error = response.get("Error", {})
    metadata = response.get("ResponseMetadata", {})
    code = str(error.get("Code", ""))
    # The service model says integer and string, but botocore passes on any JSON value.
    status = response.get("OriginalStatusCode")
    message = response.get("OriginalMessage")
    is_original = type(status) is int and 100 <= status <= 999
    is_failure = code in _MODEL_CODES and status != 400
    return build_invocation_error(
        endpoint,
        "the model failed" if is_failure else "the request was rejected",
        code=code,
        status=status if is_original else metadata.get("HTTPStatusCode"),
        model_message=read_model_message(str(message)) if message else error.get("Message"),
        request_id=metadata.get("RequestId"),
    )
