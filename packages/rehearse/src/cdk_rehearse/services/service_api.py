"""Calls the services of the account through boto3; checks and records every request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import boto3
import botocore.session
from botocore import xform_name
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from werkzeug.test import EnvironBuilder, run_wsgi_app

from constructs_triton_core.cloud_assembly.unknown_values import contains_unknown

from ..behaviour import CALM, Behaviour
from ..errors import NotSimulatedError, StackError
from ..moto_account.backends import RawResponse, stored
from ..values.stand_ins import StandIns
from .request_shapes import conform

_ABSENT = {
    "ecr": ("RepositoryNotFoundException",),
    "iam": ("NoSuchEntity",),
    "kms": ("NotFoundException",),
    "lambda": ("ResourceNotFoundException",),
    "logs": ("ResourceNotFoundException",),
    "s3": ("NoSuchBucket", "NoSuchKey"),
    "scheduler": ("ResourceNotFoundException",),
    "sns": ("NotFound",),
}
#: Failures of the simulated account, which are none of AWS.
_OF_SIMULATION = ("InternalFailure", "NotImplemented")
_SHARED_URL = "http://127.0.0.1"
CREDENTIALS = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}


def client(
    service: str, endpoint_url: str, region: str, credentials: dict[str, str] | None = None
) -> Any:
    """A boto3 client without retries, with path-style buckets since loopback has no subdomains."""
    config = Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1})
    place: dict[str, Any] = {"endpoint_url": endpoint_url, "region_name": region, "config": config}
    return _boto3_client(service, **place, **(credentials or CREDENTIALS))


# Creating a client takes 8 ms.
_shared_client = cache(lambda service, region: client(service, _SHARED_URL, region))
_boto3_client: Any = boto3.client  # the type depends on the service's name
Place = tuple[str, str, str]
"""Account, Region, and the name of a parameter or an output, as ``<stack>.<output>``."""


class Undecided(NamedTuple):
    """An action of a role on a resource outside of the stacks, whose own policy may allow it."""

    role_arn: str
    action: str
    resource: str


@dataclass
class ServiceApi:
    """Calls services as CloudFormation does; ``calls`` records service, operation and request."""

    endpoint_url: str
    account: str
    region: str
    application: Any  # answers at the URL, and this process without a connection, in half the time
    behaviour: Behaviour = CALM
    calls: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    runs_all_functions: bool = False
    """Whether all Python functions run, or only the deploy-time functions of this library."""
    assumes_existing: bool = False
    """Whether exports, buckets and roles that no stack of this account creates exist. Otherwise
    they are an error."""
    assumed: set[tuple[str, str]] = field(default_factory=set)
    """Kind and name of the buckets and roles that were created because they
    exist outside the stacks.
    """
    filled_outside: frozenset[str] | None = frozenset()
    """Names of the buckets of the stacks that others may have filled, so that their objects are not
    known. ``None`` while the deployed version is set up: each bucket that is empty may be one.
    """
    mentioned: set[tuple[str, str]] = field(default_factory=set)
    """Kind and name of the buckets, roles, keys and networks that properties of resources name."""
    undecided: set[Undecided] = field(default_factory=set)
    """What may be allowed by a policy outside of the stacks, and is allowed by none of theirs."""
    awaited: set[tuple[str, str, str]] = field(default_factory=set)
    """What the running operation creates: the service's operation, the member for the name, and
    the name.
    """
    not_simulated: dict[str, list[str]] = field(default_factory=dict)
    """Resource types, or properties of them, that no provider knows,
    with ``<stack>/<logical ID>``.
    """
    opaque: dict[tuple[str, str], tuple[str, Mapping[str, Any]]] = field(default_factory=dict)
    """Type and properties of the resources that are not simulated, by stack and logical ID."""
    passed: dict[Place, str] = field(default_factory=dict)
    """What stacks of other accounts and Regions pass to those of this one."""
    all_regions_url: str | None = None
    """The URL that answers for each Region, while the account is served."""
    imported: Mapping[Place, str] = field(default_factory=dict)
    """The stacks of other Regions that read a parameter, which may then not change."""
    stand_ins: StandIns = field(init=False)
    """What has the place of values that are not known."""
    _clients: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.stand_ins = StandIns(self.account, self.region)

    def client(self, service: str) -> Any:
        """A client of the administrator, which the accounts of a process have
        one after the other.
        """
        if service not in self._clients:
            self._clients[service] = _shared_client(service, self.region)
            events = self._clients[service].meta.events
            events.unregister("before-send", unique_id="answer")
            events.register("before-send", self._answer, unique_id="answer")
        return self._clients[service]

    def _answer(self, request: Any, **_: Any) -> AWSResponse:
        """Answer a request of botocore by the application, without a connection."""
        path = request.url.removeprefix(_SHARED_URL)
        texts = {
            name: v.decode() if isinstance(v, bytes) else v for name, v in request.headers.items()
        }
        sent: dict[str, Any] = {
            "method": request.method,
            "headers": texts,
            "data": request.body or b"",
        }
        environ = EnvironBuilder(path, self.endpoint_url, **sent).get_environ()
        if not request.body:
            environ["CONTENT_LENGTH"] = "0"  # which HTTP clients send; the builder leaves it out
        answer, status, given = run_wsgi_app(self.application, environ, buffered=True)
        headers = HTTPHeaders.from_pairs(list(given))
        return AWSResponse(request.url, int(status[:3]), headers, RawResponse(b"".join(answer)))

    def backend(self, service: str) -> Any:
        """What a service stores in this account, and in its Region unless it is global."""
        return stored(service, self.account, self.region)

    def call(self, service: str, operation: str, **request: Any) -> Any:
        """Call an operation; raises ``StackError`` with the service's message
        or all invalid members.

        A refusal of a request with an unknown value is a ``NotSimulatedError``.
        """
        conformed, errors = conform(service, operation, request)
        if errors:
            # CloudFormation's schema has the property, so that its provider does not know it.
            is_unknown = all(": unknown member " in error for error in errors)
            message = f"Invalid request provided: {'; '.join(errors)}"
            raise NotSimulatedError(message) if is_unknown else StackError(message)
        self.calls.append((service, operation, conformed))
        try:
            return getattr(self.client(service), xform_name(operation))(**conformed)
        except ClientError as error:
            details = error.response["Error"]
            message = f"{details['Message']} (Service: {service}, Code: {details['Code']})"
            if contains_unknown(request):  # the service has refused a stand-in, perhaps
                raise NotSimulatedError(message) from error
            raise _error_class(service, details["Code"])(message) from error
        except BotoCoreError as error:
            if contains_unknown(request):
                raise NotSimulatedError(str(error)) from error
            raise StackError(str(error)) from error

    def create_bucket(self, name: str) -> None:
        """Create a bucket in the Region; us-east-1 must not be named."""
        place = {"CreateBucketConfiguration": {"LocationConstraint": self.region}}
        self.call(
            "s3", "CreateBucket", Bucket=name, **({} if self.region == "us-east-1" else place)
        )

    def note_not_simulated(self, what: str, stack: str, logical_id: str) -> None:
        """Note a type, or a part of one, that is not simulated."""
        names = self.not_simulated.setdefault(what, [])
        if (name := f"{stack}/{logical_id}" if stack else logical_id) not in names:
            names.append(name)


def _error_class(service: str, code: str) -> type[StackError]:
    """What a template refers to and this account does not have is in the user's account."""
    if code in _OF_SIMULATION:
        return NotSimulatedError
    is_absent = code in _ABSENT.get(service, ()) or (
        service == "ec2" and code.endswith(".NotFound")
    )
    return NotSimulatedError if is_absent else StackError


@cache
def share_service_models() -> None:
    """Let sessions share parsed models; those of the services would parse each again,
    a third of the time of a rehearsal.
    """
    botocore.session.create_loader = cache(botocore.session.create_loader)
