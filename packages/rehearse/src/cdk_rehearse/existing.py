"""What templates name and no stack creates: buckets, roles, keys and networks that exist before a
rehearsal.

They are assumed to exist, and are named as not simulated. Nothing is known of their content and
settings: an object that a template expects in such a bucket is there, and such a role may do
everything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from .construct_libraries import construct_libraries
from .errors import NotSimulatedError
from .moto_account.backends import add_bucket, add_role
from .services.service_api import ServiceApi
from .values.stand_ins import is_opaque

Mention = tuple[str, str]
"""A kind of resource and its name."""

_REGISTRIES = json.loads(Path(__file__).with_name("aws_registries.json").read_text())["accounts"]

_ARN = r"arn:aws[\w-]*"
"""The beginning of an ARN in any partition."""
_NOT_A_REGISTRY = rf"(?!{'|'.join(_REGISTRIES)})"
"""In front of an account: it is none of AWS's registries of deep learning containers."""
_IAM_PATH = r"(?:[\w+=,.@-]+/)*"
_IAM_NAME = r"([\w+=,.@-]+)"
"""Source: IAM user guide, "IAM identifiers": letters, digits and ``_+=,.@-``."""

_PATTERNS = {
    "bucket": re.compile(rf"(?:{_ARN}:s3:::|\bs3://)([a-z0-9][a-z0-9.-]+[a-z0-9])"),
    "role": re.compile(rf"{_ARN}:iam::\d*:role/{_IAM_PATH}{_IAM_NAME}"),
    "managed policy": re.compile(rf"{_ARN}:iam::\d+:policy/{_IAM_PATH}{_IAM_NAME}"),
    "KMS key": re.compile(rf"{_ARN}:kms:[\w-]*:\d*:key/([\w-]+)"),
    "topic": re.compile(rf"{_ARN}:sns:[\w-]*:\d*:([\w-]+)"),
    "image repository": re.compile(
        rf"(?:\b{_NOT_A_REGISTRY}\d{{12}}\.dkr\.ecr\.[\w.-]+"
        rf"|{_ARN}:ecr:[\w-]*:{_NOT_A_REGISTRY}\d+:repository)"
        r"/(?:[\w.-]+/)*([\w.-]+)"
    ),
    "VPC": re.compile(r"\b(vpc-[0-9a-f]{8,17})\b"),
    "subnet": re.compile(r"\b(subnet-[0-9a-f]{8,17})\b"),
    "security group": re.compile(r"\b(sg-[0-9a-f]{8,17})\b"),
}
"""How each kind of resource is named in a property; the group is its name.

Sources: Service Authorization Reference, the resource types of each service; the address of an
image, Amazon ECR user guide, "Pulling an image"; the IDs, EC2 user guide, "Resource IDs".
"""
_OF_AWS = re.compile(r"cdk-[a-z0-9]+-|AWSServiceRole|AWS_MANAGED_KEY$")
"""The beginnings of what `cdk bootstrap` and AWS itself create."""

_TRUST_OF_ANY_SERVICE = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": "*"}],
}
_EVERY_PERMISSION = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}],
}


def mentions(value: Any) -> Iterator[Mention]:
    """Yield the resources that the properties of a resource name."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from mentions(item)
    elif isinstance(value, str) and not is_opaque(value):
        yield from _mentions_in_text(value)


def _mentions_in_text(text: str) -> Iterator[Mention]:
    for kind, pattern in _PATTERNS.items():
        for match in pattern.finditer(text):
            name = match[1]
            if not _OF_AWS.match(name):
                yield kind, name


def outside(mentioned: Iterable[Mention], physical_ids: Iterable[str]) -> dict[str, list[str]]:
    """Return what is mentioned and was never created, by kind;
    stacks have or had the physical IDs.
    """
    created = {re.split("[:/]", physical_id)[-1] for physical_id in physical_ids}
    found: dict[str, list[str]] = {}
    for kind, name in sorted(mentioned):
        if name not in created:
            found.setdefault(f"existing {kind}", []).append(name)
    return found


def is_assumed_bucket(api: ServiceApi, name: str) -> bool:
    """Return whether a bucket exists outside the stacks, as far as the account knows."""
    exists = name in api.backend("s3").buckets
    return _is_assumed(api, exists, ("bucket", name), "CreateBucket", Bucket=name)


def is_assumed_role(api: ServiceApi, role: str) -> bool:
    """Return whether a role, given by name or ARN, exists outside the stacks."""
    name = role.rpartition("/")[2]
    exists = any(known.name == name for known in api.backend("iam").roles.values())
    return _is_assumed(api, exists, ("role", name), "CreateRole", RoleName=name)


def is_deleted_repository(api: ServiceApi, account: str, region: str, name: str) -> bool:
    """Return whether an image repository was created in this account, and exists no more."""
    if (account, region) != (api.account, api.region) or name in api.backend("ecr").repositories:
        return False
    created = (members for _, operation, members in api.calls if operation == "CreateRepository")
    return any(members["repositoryName"] == name for members in created)


def expect_created(api: ServiceApi, operation: str, **member: str) -> None:
    """Raise ``NotSimulatedError`` for what a stack names and none has created, such as an endpoint.

    It may exist in AWS, so that a request which needs it is not an error.
    """
    if not api.assumes_existing:
        return
    # What the running operation creates later is in the stacks, and does not exist yet.
    is_awaited = any((operation, *item) in api.awaited for item in member.items())
    if not is_awaited and not _was_created(api, operation, member):
        raise NotSimulatedError(f"{', '.join(member.values())} exists outside of the stacks")


def _is_assumed(
    api: ServiceApi, exists: bool, mention: Mention, operation: str, **member: str
) -> bool:
    if exists:
        return mention in api.assumed
    return api.assumes_existing and not _was_created(api, operation, member)


def _was_created(api: ServiceApi, operation: str, member: Mapping[str, str]) -> bool:
    """Return whether the account was asked to create the resource that ``member`` names."""
    created = (members for _, name, members in api.calls if name == operation)
    return any(member.items() <= members.items() for members in created)


def assume_role(api: ServiceApi, role: str) -> None:
    """Create a role that exists outside the stacks, with every permission,
    unless it was created before.
    """
    name = role.rpartition("/")[2]
    iam = api.backend("iam")
    exists = any(known.name == name for known in iam.roles.values())
    if not exists and is_assumed_role(api, role):
        api.assumed.add(("role", name))
        add_role(iam, name, json.dumps(_TRUST_OF_ANY_SERVICE), json.dumps(_EVERY_PERMISSION))


def assume_sources(api: ServiceApi, resource_type: str, properties: Mapping[str, Any]) -> None:
    """Create the buckets outside the stacks that a library's custom resource uses,
    with its sources.
    """
    if not api.assumes_existing:
        return
    for library in construct_libraries():
        for name in library.buckets_of(resource_type, properties):
            _assume_bucket(api, name)
        for bucket, key in library.sources_of(resource_type, properties, partial(_read, api)):
            if is_assumed_bucket(api, bucket):
                api.client("s3").put_object(Bucket=bucket, Key=key, Body=b"")


def is_placed(api: ServiceApi, bucket: str, prefix: str) -> bool:
    """Return whether a library's function that does not run would place objects there."""
    return any(bucket == place and prefix.startswith(above) for place, above in _places(api))


def _places(api: ServiceApi) -> Iterator[tuple[str, str]]:
    """The buckets and prefixes where functions of libraries that do not run would place objects."""
    for library in construct_libraries():
        for resource_type, properties in list(api.opaque.values()):
            yield from library.places_of(resource_type, properties)


def may_be_filled_outside(api: ServiceApi, bucket: str) -> bool:
    """Return whether the objects of a bucket are not known, since the stacks have placed none.

    The deployed version has what it needs, such as an object that a person has uploaded. A bucket
    that the same deployment creates is empty.
    """
    found = api.backend("s3").buckets.get(bucket)
    if found is None or found.keys or bucket in {place for place, _ in _places(api)}:
        return False
    return api.filled_outside is None or bucket in api.filled_outside


def assumed_maxima(api: ServiceApi, resource_id: str) -> Iterator[int]:
    """Yield the maximum of each scalable target that a library's function would register."""
    for library in construct_libraries():
        for resource_type, properties in api.opaque.values():
            for name, highest in library.targets_of(resource_type, properties):
                if name == resource_id:
                    yield highest


def _assume_bucket(api: ServiceApi, name: str) -> None:
    if name not in api.backend("s3").buckets and is_assumed_bucket(api, name):
        api.assumed.add(("bucket", name))
        add_bucket(api.backend("s3"), name, api.region)


def _read(api: ServiceApi, bucket: str, key: str) -> bytes | None:
    found = api.backend("s3").buckets.get(bucket)
    stored = None if found is None else found.keys.get(key)
    content: bytes | None = getattr(stored, "value", None)  # a template alone has no assets
    return content
