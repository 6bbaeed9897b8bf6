"""Sends requests over aiohttp, signed with botocore where they have to be."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from constructs_triton_client.transports.sagemaker_transport import READ_TIMEOUT_SECONDS
from constructs_triton_core.aws.aws_reader import make_session
from constructs_triton_core.errors import ConstructsTritonError, InvalidValueError, MissingDependencyError
from constructs_triton_tools.measuring.load_test.prepared_requests import PreparedRequest
from constructs_triton_tools.measuring.load_test.samples import OK, count_tokens

if TYPE_CHECKING:
    import aiohttp

_SHOWN_BYTES = 300
# SageMaker ends a response stream after 8 minutes.
_STREAM_SECONDS = 490
_SKIPPED = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")


class Signer:
    """Signs requests with Signature Version 4, as boto3 does.

    ``credentials`` are botocore's. They are asked for each request, so that expired ones are renewed.
    """

    def __init__(self, credentials: Any) -> None:
        self._credentials = credentials

    @classmethod
    def of_default_session(cls) -> Signer:
        """Create a signer with the credentials that boto3 finds."""
        credentials = make_session().get_credentials()
        if credentials is None:
            raise InvalidValueError("AWS: there are no credentials; log in, or set AWS_PROFILE")
        return cls(credentials)

    def sign(self, request: PreparedRequest) -> dict[str, str]:
        """Return the request's headers with a new signature."""
        if request.scope is None:
            return request.headers
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest

        message = AWSRequest("POST", request.url, data=request.body, headers=request.headers)
        scope = request.scope
        SigV4Auth(self._credentials.get_frozen_credentials(), scope.service, scope.region).add_auth(message)
        return dict(message.headers)


class HttpSender:
    """Sends requests over connections that stay open. Use it with ``async with``.

    ``is_local`` is whether proxies are ignored. The read timeout is 70 seconds, because a container has 60.
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
            trust_env=not self._is_local,
            auto_decompress=False,
            skip_auto_headers=_SKIPPED,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def send(self, request: PreparedRequest) -> tuple[int, str]:
        """Send one request and read its response; return the status, and a message after an error."""
        aiohttp = import_aiohttp()
        try:
            async with self._post(request) as response:
                body = await response.read()
                return response.status, "" if response.status == OK else _describe(response.status, body)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return 0, f"{type(error).__name__}: {error}"

    async def stream(
        self, request: PreparedRequest, note: Callable[[float, int | None], None]
    ) -> tuple[int, str]:
        """Send one request and note the events of its response as they arrive.

        An error within the stream has status 200 and a message.

        ``note`` is called for each event with the time of the event loop at which it arrived, and its tokens.
        """
        aiohttp = import_aiohttp()
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
                        note(arrived, count_tokens(event))
                for event in reader.finish():
                    note(clock(), count_tokens(event))
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
        return self._session.post(url, data=request.body, headers=headers, **options)


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
