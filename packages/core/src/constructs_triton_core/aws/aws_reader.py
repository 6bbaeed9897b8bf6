"""Reads from AWS, and notes what could not be read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from constructs_triton_core.errors import InvalidValueError, MissingDependencyError

if TYPE_CHECKING:
    import boto3

__all__ = [
    "AwsReader",
    "describe_denial",
    "describe_failure",
    "make_session",
    "missing_permission",
    "permission_of",
    "reaching_aws",
]

# HeadObject has an error of S3 without a body, so its code is the HTTP status.
_DENIED = ("AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "AuthorizationError", "403")
#: Operations whose permission has another name.
_PERMISSIONS = {"s3:HeadObject": "s3:GetObject", "s3:ListObjectsV2": "s3:ListBucket"}
_NAMED_PERMISSION = re.compile(r"not authorized to perform: ([a-z0-9-]+:\w+)")
_ADDRESS_HINT = "check the proxy, and AWS_ENDPOINT_URL and endpoint_url of the profile"
_PAGE = re.compile(rb"\s*<(!doctype|html)", re.IGNORECASE)
_PAGE_TOKENS = ("NextToken", "nextToken", "Marker")


def make_session(region: str | None = None, profile: str | None = None) -> boto3.Session:
    """Return a boto3 session.

    Raises:
        MissingDependencyError: boto3 is not installed.
        InvalidValueError: the profile does not exist, or the Region is empty.
    """
    try:
        import boto3
    except ImportError:
        raise MissingDependencyError(
            "boto3 is not installed; run `pip install 'constructs-triton-client[aws]'`"
        ) from None
    with reaching_aws():
        session = boto3.Session(region_name=region, profile_name=profile)
    if session.region_name == "":  # boto3 makes a URL without a host of it
        raise InvalidValueError("AWS: the Region is empty; set --region, or unset AWS_DEFAULT_REGION")
    _name_pages(session.events)
    return session


def _name_pages(events: Any) -> None:
    """Let the clients of these events name the address that answers with a page, for example a proxy."""
    events.register("after-call", _name_page, unique_id="constructs_triton.pages")


def _name_page(http_response: Any, parsed: dict[str, Any], model: Any, **_: object) -> None:
    """Replace the HTML page in the message of an error.

    Raises:
        InvalidValueError: a page is the answer to a call that succeeded.
    """
    # S3 describes objects by their own type.
    is_html = http_response.headers.get("Content-Type", "").startswith("text/html")
    if not is_html or model.has_streaming_output or not _PAGE.match(http_response.content):
        return
    url = urlsplit(http_response.url)
    message = (
        f"{url.scheme}://{url.netloc} answered with an HTML page of status {http_response.status_code}, "
        f"which is not an answer of AWS; {_ADDRESS_HINT}"
    )
    if http_response.status_code < 300:
        raise InvalidValueError(f"{model.service_model.service_name}:{model.name}: {message}")
    parsed["Error"] = {**parsed.get("Error", {}), "Message": message}


@contextmanager
def reaching_aws() -> Iterator[None]:
    """Turn boto3's errors of configuration and connection into ``InvalidValueError``."""
    from botocore.exceptions import BotoCoreError, NoCredentialsError, NoRegionError
    from botocore.parsers import ResponseParserError

    try:
        yield
    except NoRegionError:
        raise InvalidValueError(
            "AWS: no Region is configured; set --region, or the variable AWS_DEFAULT_REGION"
        ) from None
    except NoCredentialsError:
        raise InvalidValueError(
            "AWS: no credentials were found; run `aws configure`, or set --profile or AWS_PROFILE"
        ) from None
    except ResponseParserError as error:  # its message has the whole page
        start = str(error).partition("\n")[0][:200]
        raise InvalidValueError(f"AWS: got what is not an answer of AWS ({start}); {_ADDRESS_HINT}") from None
    except BotoCoreError as error:
        raise InvalidValueError(f"AWS: cannot be reached ({error}); set --region or --profile") from error


def describe_denial(service: str, error: Any) -> str | None:
    """Describe the missing permission of botocore's ``ClientError``; ``None`` for other errors."""
    permission = missing_permission(service, error)
    if permission is None:
        return None
    return f"{permission}: access denied; allow it, for example with endpoint.grant_operate"


def describe_failure(service: str, error: Any) -> str:
    """Describe botocore's ``ClientError`` of a call that is required."""
    permission = missing_permission(service, error)
    denied = f"{permission}: access denied; add this permission to your role" if permission else ""
    return denied or _failure(service, error)


def permission_of(service: str, operation: str) -> str:
    """Return the IAM action of an operation, such as ``sagemaker:DescribeModel``."""
    action = f"{service}:{operation}"
    return _PERMISSIONS.get(action, action)


def missing_permission(service: str, error: Any) -> str | None:
    """Return the IAM action that botocore's ``ClientError`` denies; ``None`` for other errors."""
    details = error.response["Error"]
    if details["Code"] not in _DENIED and not details["Code"].endswith("NotAuthorized"):
        return None
    # The operation may need another permission, for example kms:Decrypt for an encrypted object.
    named = _NAMED_PERMISSION.search(details.get("Message", ""))
    return named[1] if named else permission_of(service, error.operation_name)


def _failure(service: str, error: Any) -> str:
    details = error.response["Error"]
    return f"{service}:{error.operation_name}: {details['Code']}: {details.get('Message', '')}"


class AwsReader:
    """Calls the reading operations of AWS services.

    What an optional call cannot read is noted in ``not_read``, one sentence for each operation.
    """

    #: The largest number of pages of one list.
    most_pages = 10

    def __init__(self, session: boto3.Session) -> None:
        self.session = session
        self.not_read: list[str] = []
        self._clients: dict[str, Any] = {}

    def client(self, service: str) -> Any:
        """The client of a service; it retries up to four times.

        Raises:
            InvalidValueError: the Region or the credentials are missing.
        """
        from botocore.config import Config

        if service not in self._clients:
            make: Any = self.session.client  # typed by the name of the service
            with reaching_aws():
                config = Config(retries={"mode": "standard", "max_attempts": 4})
                self._clients[service] = make(service, config=config)
            _name_pages(self._clients[service].meta.events)
        return self._clients[service]

    def read(self, service: str, operation: str, **request: Any) -> dict[str, Any]:
        """Return the answer of an operation; an empty one if it cannot be read, which is noted.

        Raises:
            InvalidValueError: AWS cannot be reached.
        """
        from botocore.exceptions import ClientError

        try:
            return self.require(service, operation, **request)
        except ClientError as error:
            self.note(service, error)
            return {}

    def require(self, service: str, operation: str, **request: Any) -> dict[str, Any]:
        """Return the answer of an operation; raises botocore's ``ClientError`` if it is an error.

        Raises:
            InvalidValueError: AWS cannot be reached.
        """
        with reaching_aws():
            answer: dict[str, Any] = getattr(self.client(service), operation)(**request)
        return answer

    def read_list(
        self, service: str, operation: str, member: str, **request: Any
    ) -> Iterator[dict[str, Any]]:
        """Yield the members of a list from up to ``most_pages`` pages."""
        for _ in range(self.most_pages):
            answer = self.read(service, operation, **request)
            yield from answer.get(member, [])
            token = next((each for each in _PAGE_TOKENS if answer.get(each)), None)
            if token is None:
                return
            request[token] = answer[token]
        self.not_read.append(f"{service}:{operation}: has more pages than are read")

    def pages(self, service: str, operation: str, **request: Any) -> Iterator[dict[str, Any]]:
        """Yield every page of a list.

        Raises:
            InvalidValueError: AWS cannot be reached, or refuses the call.
        """
        from botocore.exceptions import ClientError

        client = self.client(service)
        try:
            with reaching_aws():
                yield from client.get_paginator(operation).paginate(**request)
        except ClientError as error:
            raise InvalidValueError(describe_failure(service, error)) from None

    def note(self, service: str, error: Any) -> None:
        """Note botocore's ``ClientError`` of an operation."""
        text = describe_denial(service, error) or _failure(service, error)
        if text not in self.not_read:
            self.not_read.append(text)
