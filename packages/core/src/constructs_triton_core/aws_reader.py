"""Calls AWS, with one wording for each of its errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from constructs_triton_core.errors import AwsError, MissingDependencyError

__all__ = [
    "AwsError",
    "AwsReader",
    "credentials_of",
    "make_session",
    "permission_of",
    "reaching_aws",
    "region_of",
]

if TYPE_CHECKING:
    import boto3


# HeadObject has an error of S3 without a body, so its code is the HTTP status.
_DENIED = re.compile(
    r"AccessDenied(Exception)?|UnauthorizedOperation|AuthorizationError|403|.*NotAuthorized"
)
#: Operations whose permission has another name.
_PERMISSIONS = {"s3:HeadObject": "s3:GetObject", "s3:ListObjectsV2": "s3:ListBucket"}
_NAMED_PERMISSION = re.compile(r"not authorized to perform: ([a-z0-9-]+:\w+)")
_ABSENT_CODE = re.compile(r"404|NoSuch|.*NotFound")
_ABSENT_MESSAGE = re.compile(r"Could not find|does not exist|No scalable target", re.IGNORECASE)
_ADDRESS_HINT = "check the proxy, and AWS_ENDPOINT_URL and endpoint_url of the profile"
_PAGE = re.compile(rb"\s*<(!doctype|html)", re.IGNORECASE)
_EXPIRED_HINT = "sign in again, for example with `aws sso login`, or renew the credentials"
_NO_REGION = ("AWS: no Region is configured", "set --region, or the variable AWS_DEFAULT_REGION")
#: The price list has the prices of all Regions, but answers only in some.
_ONLY_IN = {"pricing": "us-east-1"}


def make_session(region: str | None = None, profile: str | None = None) -> boto3.Session:
    """Return a boto3 session.

    Raises:
        MissingDependencyError: boto3 is not installed.
        AwsError: the profile does not exist, or the Region is empty.
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
        raise AwsError("AWS: the Region is empty", "set --region, or unset AWS_DEFAULT_REGION")
    _name_pages(session.events)
    return session


def region_of(session: boto3.Session) -> str:
    """Return the Region of a session.

    Raises:
        AwsError: it has none.
    """
    if session.region_name is None:
        raise AwsError(*_NO_REGION)
    return session.region_name


def _name_pages(events: Any) -> None:
    """Let the clients of these events name the address that answers with a page,
    for example a proxy.
    """
    events.register("after-call", _name_page, unique_id="constructs_triton.pages")


def _name_page(http_response: Any, parsed: dict[str, Any], model: Any, **_: object) -> None:
    """Refuse an answer that is an HTML page, or a text that botocore could not parse."""
    kind = http_response.headers.get("Content-Type", "application/")
    # S3 and endpoints describe what they answer by its own type.
    if kind.startswith(("application/", "text/xml")) or model.has_streaming_output:
        return
    body = http_response.content
    is_html = kind.startswith("text/html") and _PAGE.match(body)
    message = parsed.get("Error", {}).get("Message")
    if is_html or (message and message.encode() == body):
        url = urlsplit(http_response.url)
        raise AwsError(
            f"{model.service_model.service_name}:{model.name}: {url.scheme}://{url.netloc} "
            f"answered with {'an HTML page' if is_html else 'an unknown text'} of status "
            f"{http_response.status_code}, which is not an answer of AWS",
            _ADDRESS_HINT,
        )


@contextmanager
def reaching_aws(service: str = "aws") -> Iterator[None]:
    """Turn the errors of boto3's calls of a service into ``AwsError``."""
    from boto3.exceptions import Boto3Error
    from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, NoRegionError
    from botocore.parsers import ResponseParserError

    try:
        yield
    except NoRegionError:
        raise AwsError(*_NO_REGION) from None
    except NoCredentialsError:
        hint = "run `aws configure`, or set --profile or AWS_PROFILE"
        raise AwsError("AWS: no credentials were found", hint) from None
    except ResponseParserError as error:  # its message has the whole page
        start = str(error).partition("\n")[0][:200]
        raise AwsError(f"AWS: got what is not an answer of AWS ({start})", _ADDRESS_HINT) from None
    except (BotoCoreError, Boto3Error, ClientError) as error:
        # Transfers of S3 put the refusal into an error of their own.
        origin = error.__context__ if isinstance(error, Boto3Error) else error
        if isinstance(origin, ClientError):
            raise _refusal(service, origin) from error
        raise AwsError(f"AWS: cannot be reached ({error})", "set --region or --profile") from error


def credentials_of(session: boto3.Session) -> Any:
    """Return botocore's credentials of a session.

    Raises:
        AwsError: the session has none.
    """
    from botocore.exceptions import NoCredentialsError

    with reaching_aws():
        credentials = session.get_credentials()
        if credentials is None:
            raise NoCredentialsError
    return credentials


def permission_of(service: str, operation: str) -> str:
    """Return the IAM action of an operation, such as ``sagemaker:DescribeModel``."""
    action = f"{service}:{operation}"
    return _PERMISSIONS.get(action, action)


def _refusal(service: str, error: Any) -> AwsError:
    """Describe botocore's ``ClientError``."""
    details = error.response["Error"]
    code = details["Code"]
    message = details.get("Message", "")
    if _DENIED.fullmatch(code):
        # The operation may need another permission, for example kms:Decrypt for an encrypted
        # object.
        named = _NAMED_PERMISSION.search(message)
        permission = named[1] if named else permission_of(service, error.operation_name)
        return AwsError(
            f"{permission}: access denied", "add this permission to your role", code, permission
        )

    is_absent = bool(_ABSENT_CODE.match(code) or _ABSENT_MESSAGE.search(message))
    hint = ""
    if is_absent:
        hint = "check the name and --region"
    elif "Expired" in code:
        hint = _EXPIRED_HINT
    return AwsError(
        f"{service}:{error.operation_name}: {code}: {message}", hint, code, is_absent=is_absent
    )


class AwsReader:
    """Calls AWS services.

    Args:
        session: boto3 session with the Region and credentials.
        endpoint_url: Address of all services. Default: those of AWS, or of the environment.
        config: Settings of botocore's ``Config``. Default: up to four attempts.
    """

    def __init__(
        self, session: boto3.Session, endpoint_url: str | None = None, **config: Any
    ) -> None:
        self.session = session
        self._address = {"endpoint_url": endpoint_url} if endpoint_url else {}
        self._config = {"retries": {"mode": "standard", "max_attempts": 4}, **config}
        self._clients: dict[str, Any] = {}

    def client(self, service: str) -> Any:
        """The client of a service.

        Raises:
            AwsError: the Region or the credentials are missing.
        """
        from botocore.config import Config

        if service not in self._clients:
            make: Any = self.session.client  # typed by the name of the service
            place = {"region_name": _ONLY_IN[service]} if service in _ONLY_IN else {}
            with reaching_aws():
                client = make(service, config=Config(**self._config), **self._address, **place)
            _name_pages(client.meta.events)
            self._clients[service] = client
        return self._clients[service]

    def require(self, service: str, operation: str, **request: Any) -> dict[str, Any]:
        """Return the answer of an operation.

        Raises:
            AwsError: AWS cannot be reached, or refuses the call.
        """
        client = self.client(service)
        with reaching_aws(service):
            answer: dict[str, Any] = getattr(client, operation)(**request)
        return answer

    def find(self, service: str, operation: str, **request: Any) -> dict[str, Any] | None:
        """Return the answer of an operation; ``None`` if what it is about does not exist.

        Raises:
            AwsError: AWS cannot be reached, or refuses the call.
        """
        try:
            return self.require(service, operation, **request)
        except AwsError as error:
            if error.is_absent:
                return None
            raise

    def describe(self, what: str, service: str, operation: str, **request: Any) -> dict[str, Any]:
        """Return the answer about what must exist, such as "endpoint digits", which the errors
        begin with.

        Raises:
            AwsError: it does not exist, or AWS cannot be reached or refuses the call.
        """
        try:
            return self.require(service, operation, **request)
        except AwsError as error:
            if not error.code:
                raise
            is_absent = error.is_absent
            why = f"does not exist in {self.session.region_name}" if is_absent else error.reason
            raise AwsError(
                f"{what}: {why}", error.hint, error.code, error.permission, is_absent
            ) from None

    def members(self, service: str, operation: str, member: str, **request: Any) -> Iterator[Any]:
        """Yield the members of all pages of a list.

        Raises:
            AwsError: AWS cannot be reached, or refuses the call.
        """
        client = self.client(service)
        with reaching_aws(service):
            for page in client.get_paginator(operation).paginate(**request):
                yield from page.get(member, [])
