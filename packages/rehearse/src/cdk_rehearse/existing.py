"""What templates name and no stack creates: buckets, roles, keys and networks that exist before a rehearsal.

They are assumed to exist, and are named as not simulated. Nothing is known of their content and settings: an
object that a template expects in such a bucket is there, and such a role may do everything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError
from moto.ecr.models import ecr_backends
from moto.iam.exceptions import NotFoundException
from moto.iam.models import iam_backends
from moto.s3.models import s3_backends

from .construct_libraries import construct_libraries
from .opaque_values import is_opaque
from .services.service_api import ServiceApi

Mention = tuple[str, str]
"""A kind of resource and its name."""

_ARN = r"arn:aws[\w-]*"
_REGISTRIES = json.loads(Path(__file__).with_name("aws_registries.json").read_text())["accounts"]
#: An account that is none of AWS's registries of deep learning containers.
_OWN = rf"(?!{'|'.join(_REGISTRIES)})"
_PATTERNS = {
    "bucket": re.compile(rf"(?:{_ARN}:s3:::|\bs3://)([a-z0-9][a-z0-9.-]+[a-z0-9])"),
    "role": re.compile(rf"{_ARN}:iam::\d*:role/(?:[\w+=,.@-]+/)*([\w+=,.@-]+)"),
    "managed policy": re.compile(rf"{_ARN}:iam::\d+:policy/(?:[\w+=,.@-]+/)*([\w+=,.@-]+)"),
    "KMS key": re.compile(rf"{_ARN}:kms:[\w-]*:\d*:key/([\w-]+)"),
    "topic": re.compile(rf"{_ARN}:sns:[\w-]*:\d*:([\w-]+)"),
    "image repository": re.compile(
        rf"(?:\b{_OWN}\d{{12}}\.dkr\.ecr\.[\w.-]+|{_ARN}:ecr:[\w-]*:{_OWN}\d+:repository)"
        r"/(?:[\w.-]+/)*([\w.-]+)"
    ),
    "VPC": re.compile(r"\b(vpc-[0-9a-f]{8,17})\b"),
    "subnet": re.compile(r"\b(subnet-[0-9a-f]{8,17})\b"),
    "security group": re.compile(r"\b(sg-[0-9a-f]{8,17})\b"),
}
_OF_AWS = re.compile(r"cdk-[a-z0-9]+-|AWSServiceRole")
"""The beginnings of what `cdk bootstrap` and AWS itself create."""
_EVERYTHING = {"Effect": "Allow", "Action": "*", "Resource": "*"}
_ANY_SERVICE = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": "*"}


def mentions(value: Any) -> Iterator[Mention]:
    """Yield the resources that the properties of a resource name."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from mentions(each)
    elif isinstance(value, str) and not is_opaque(value):
        for kind, pattern in _PATTERNS.items():
            yield from ((kind, match[1]) for match in pattern.finditer(value) if not _OF_AWS.match(match[1]))


def outside(mentioned: Iterable[Mention], physical_ids: Iterable[str]) -> dict[str, list[str]]:
    """Return what is mentioned and was never created, by kind; stacks have or had the physical IDs."""
    created = {re.split("[:/]", each)[-1] for each in physical_ids}
    found: dict[str, list[str]] = {}
    for kind, name in sorted(mentioned):
        if name not in created:
            found.setdefault(f"existing {kind}", []).append(name)
    return found


def is_assumed_bucket(api: ServiceApi, name: str) -> bool:
    """Return whether a bucket exists outside the stacks, as far as the account knows."""
    if name in s3_backends[api.account]["aws"].buckets:
        return ("bucket", name) in api.assumed
    return api.assumes_existing and not _was_created(api, "s3", "CreateBucket", Bucket=name)


def is_assumed_role(api: ServiceApi, role: str) -> bool:
    """Return whether a role, given by name or ARN, exists outside the stacks."""
    name = role.rpartition("/")[2]
    if any(each.name == name for each in iam_backends[api.account]["aws"].roles.values()):
        return ("role", name) in api.assumed
    return api.assumes_existing and not _was_created(api, "iam", "CreateRole", RoleName=name)


def is_deleted_repository(api: ServiceApi, account: str, region: str, name: str) -> bool:
    """Return whether an image repository was created in this account, and exists no more."""
    is_here = (account, region) == (api.account, api.region)
    exists = name in ecr_backends[api.account][api.region].repositories
    return is_here and not exists and _was_created(api, "ecr", "CreateRepository", repositoryName=name)


def _was_created(api: ServiceApi, service: str, operation: str, **member: str) -> bool:
    return any(
        (service, operation) == called[:2] and member.items() <= called[2].items() for called in api.calls
    )


def assume_role(api: ServiceApi, role: str) -> None:
    """Create a role that exists outside the stacks, with every permission, unless it was created before."""
    name, backend = role.rpartition("/")[2], iam_backends[api.account]["aws"]
    try:
        backend.get_role(name)
    except NotFoundException:
        if is_assumed_role(api, role):
            api.assumed.add(("role", name))
            backend.create_role(name, _document(_ANY_SERVICE), "/", None, "", [], "3600")
            backend.put_role_policy(name, "assumed", _document(_EVERYTHING))


def _document(statement: Mapping[str, str]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def assume_sources(api: ServiceApi, resource_type: str, properties: Mapping[str, Any]) -> None:
    """Create the buckets outside the stacks that a library's custom resource uses, with its sources."""
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
    return any(
        bucket == place and prefix.startswith(above)
        for library in construct_libraries()
        for each in list(api.opaque.values())
        for place, above in library.places_of(*each)
    )


def assumed_maxima(api: ServiceApi, resource_id: str) -> Iterator[int]:
    """Yield the maximum of each scalable target that a library's function would register."""
    for library in construct_libraries():
        for each in api.opaque.values():
            yield from (highest for name, highest in library.targets_of(*each) if name == resource_id)


def _assume_bucket(api: ServiceApi, name: str) -> None:
    if name not in s3_backends[api.account]["aws"].buckets and is_assumed_bucket(api, name):
        api.assumed.add(("bucket", name))
        s3_backends[api.account]["aws"].create_bucket(name, api.region)


def _read(api: ServiceApi, bucket: str, key: str) -> bytes | None:
    try:
        content: bytes = api.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
    except ClientError:  # a template alone has no assets; the function is not simulated
        return None
    return content
