"""Requests as boto3 would send them: address, headers and body,
ready to be signed and sent many times.
"""

from __future__ import annotations

import asyncio
import os
import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies, proxy_bypass

from constructs_triton_client import HttpTransport, Invocation, SageMakerTransport
from constructs_triton_client.transports.http_transport import container_headers, container_url
from constructs_triton_client.transports.sagemaker_transport import READ_TIMEOUT_SECONDS
from constructs_triton_core.aws_reader import credentials_of, make_session
from constructs_triton_core.errors import (
    ConstructsTritonError,
    InvalidValueError,
    MissingDependencyError,
)
from constructs_triton_tools.measuring.load_test.samples import OK

if TYPE_CHECKING:
    import aiohttp

# What a signature consists of, and what boto3 adds for each attempt. The rest of the headers stays.
_RENEWED = {"authorization", "x-amz-date", "x-amz-security-token"}
_PER_ATTEMPT = {"amz-sdk-invocation-id", "amz-sdk-request", "user-agent", "content-length"}
_SCOPE = re.compile(r"Credential=[^/]{1,200}/\d+/([^/]+)/([^/]+)/aws4_request")
_SHOWN_BYTES = 300
# SageMaker ends a response stream after 8 minutes.
_STREAM_SECONDS = 490
_SKIPPED = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")


@dataclass(frozen=True, slots=True)
class SigningScope:
    """Region and service name of a signature (Signature Version 4)."""

    region: str
    service: str


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request to send.

    ``headers`` are without the signature. ``scope`` is the Region and the service of the signature;
    ``None`` if the request is not signed.
    """

    url: str
    headers: dict[str, str]
    body: bytes = field(repr=False)
    scope: SigningScope | None = None
    weight: float = 1.0


def prepare(
    transport: SageMakerTransport | HttpTransport,
    invocation: Invocation,
    *,
    weight: float = 1.0,
    is_stream: bool = False,
) -> PreparedRequest:
    """Return the request that a transport would send for an invocation. Nothing is sent.

    boto3 resolves the address, writes the parameters of InvokeEndpoint as headers, and decides
    whether the request is signed.

    Nothing is sent over ``transport``.
    """
    if not weight > 0:
        raise InvalidValueError(
            f"weight: must be above 0, got {weight}; raise it, or remove the request"
        )
    if isinstance(transport, HttpTransport):
        headers = {"Content-Type": invocation.content_type, **container_headers(invocation.options)}
        url = container_url(transport.url, invocation.options)
        return PreparedRequest(url, headers, invocation.body, weight=weight)
    sent = _capture(transport, invocation, is_stream=is_stream)
    headers = {name: _text(value) for name, value in sent.headers.items()}
    kept = {
        name: value
        for name, value in headers.items()
        if name.lower() not in _RENEWED | _PER_ATTEMPT
    }
    return PreparedRequest(sent.url, kept, invocation.body, _scope(headers), weight)


def _capture(transport: SageMakerTransport, invocation: Invocation, *, is_stream: bool) -> Any:
    """Let boto3 make the whole request, and take it before it is sent."""
    captured: list[Any] = []

    def answer(request: Any, **_: Any) -> Any:
        from botocore.awsrequest import AWSResponse
        from botocore.compat import HTTPHeaders

        captured.append(request)
        return AWSResponse(request.url, 200, HTTPHeaders(), _EmptyBody())

    events = transport.client("sagemaker-runtime").meta.events
    operation = "InvokeEndpointWithResponseStream" if is_stream else "InvokeEndpoint"
    name = f"before-send.sagemaker-runtime.{operation}"
    events.register(name, answer)
    try:
        if is_stream:
            list(transport.stream(invocation))
        else:
            transport.invoke(invocation)
    finally:
        events.unregister(name, answer)
    return captured[0]


class _EmptyBody:
    """The body of a response with nothing in it."""

    def stream(self, *_: Any, **__: Any) -> Any:
        return iter(())

    def read(self, *_: Any) -> bytes:
        return b""

    def close(self) -> None:
        """There is no connection."""


def _scope(headers: dict[str, str]) -> SigningScope | None:
    match = _SCOPE.search(headers.get("Authorization", ""))
    return SigningScope(*match.groups()) if match else None


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value


class Signer:
    """Signs requests with Signature Version 4, as boto3 does.

    ``credentials`` are botocore's. They are asked for each request, so that expired ones are
    renewed.
    """

    def __init__(self, credentials: Any) -> None:
        self._credentials = credentials

    @classmethod
    def of_default_session(cls) -> Signer:
        """Create a signer with the credentials that boto3 finds."""
        return cls(credentials_of(make_session()))

    def sign(self, request: PreparedRequest) -> dict[str, str]:
        """Return the request's headers with a new signature."""
        if request.scope is None:
            return request.headers
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest

        message = AWSRequest("POST", request.url, data=request.body, headers=request.headers)
        scope = request.scope
        SigV4Auth(self._credentials.get_frozen_credentials(), scope.service, scope.region).add_auth(
            message
        )
        return dict(message.headers)


class HttpSender:
    """Sends requests over connections that stay open. Use it with ``async with``.

    ``is_local`` is whether proxies are ignored. The read timeout is 70 seconds, because a container
    has 60.
    """

    def __init__(self, signer: Signer | None, *, is_local: bool) -> None:
        self._signer = signer
        self._is_local = is_local
        self._session: aiohttp.ClientSession

    async def __aenter__(self) -> HttpSender:
        aiohttp = import_aiohttp()
        connector = aiohttp.TCPConnector(limit=0, ssl=_certificates())
        self._session = aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=READ_TIMEOUT_SECONDS),
            auto_decompress=False,
            skip_auto_headers=_SKIPPED,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._session.close()

    async def send(self, request: PreparedRequest) -> tuple[int, str]:
        """Send one request and read its response; return the status,
        and a message after an error.
        """
        aiohttp = import_aiohttp()
        try:
            async with self._post(request) as response:
                beginning = await _read_to_the_end(response)
                if response.status == OK:
                    return OK, ""
                return response.status, _describe(response.status, beginning)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return 0, f"{type(error).__name__}: {error}"

    async def stream(
        self, request: PreparedRequest, note: Callable[[float, int | None, int | None], None]
    ) -> tuple[int, str]:
        """Send one request and note the events of its response as they arrive.

        An error within the stream has status 200 and a message.

        ``note`` is called for each event with the time of the event loop at which it arrived, its
        tokens, and those of the stream up to it.
        """
        aiohttp = import_aiohttp()
        from constructs_triton_tools.measuring.generated_text import count_all_tokens, count_tokens
        from constructs_triton_tools.measuring.load_test.stream_reader import StreamReader

        clock = asyncio.get_running_loop().time
        status = 0
        try:
            timeout = aiohttp.ClientTimeout(total=_STREAM_SECONDS, sock_read=READ_TIMEOUT_SECONDS)
            async with self._post(request, timeout=timeout) as response:
                status = response.status
                if status != OK:
                    return status, _describe(status, await response.content.read(_SHOWN_BYTES))
                reader = StreamReader(response.content_type)
                async for part in response.content.iter_any():
                    arrived = clock()
                    for event in reader.feed(part):
                        note(arrived, count_tokens(event), count_all_tokens(event))
                for event in reader.finish():
                    note(clock(), count_tokens(event), count_all_tokens(event))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return status, f"{type(error).__name__}: {error}"
        except ConstructsTritonError as error:
            return status, str(error)
        return OK, ""

    def _post(self, request: PreparedRequest, **options: Any) -> Any:
        from yarl import URL

        headers = self._signer.sign(request) if self._signer else request.headers
        # The path is escaped already, and the signature is about these characters.
        url = URL(request.url, encoded=True)
        proxy = None if self._is_local else _proxy(url.scheme, url.host or "")
        return self._session.post(url, data=request.body, headers=headers, proxy=proxy, **options)


async def _read_to_the_end(response: aiohttp.ClientResponse) -> bytes:
    """Read a response of any size and return its beginning; the rest is not kept."""
    beginning = b""
    async for part in response.content.iter_any():
        if len(beginning) < _SHOWN_BYTES:
            beginning += part[:_SHOWN_BYTES]
    return beginning


@cache
def _proxy(scheme: str, host: str) -> str | None:
    """The proxy that the environment sets for a host.

    aiohttp's ``trust_env`` would also read ``~/.netrc``: an entry for the host, or the default one,
    is sent to the server, and is an error beside a signature.
    """
    return None if proxy_bypass(host) else getproxies().get(scheme)


def _describe(status: int, body: bytes) -> str:
    return f"{status} {' '.join(body[:_SHOWN_BYTES].decode(errors='replace').split())}"


def _certificates() -> ssl.SSLContext | bool:
    """The certificates that boto3 would use, if they are set in the environment."""
    bundle = os.environ.get("AWS_CA_BUNDLE")
    return ssl.create_default_context(cafile=bundle) if bundle else True


def import_aiohttp() -> Any:
    """Return the module."""
    try:
        import aiohttp
    except ImportError:
        raise MissingDependencyError(
            "aiohttp is not installed; run `pip install 'constructs-triton[load]'`"
        ) from None
    return aiohttp
