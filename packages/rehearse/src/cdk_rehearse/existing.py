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

_FACTS = json.loads(Path(__file__).with_suffix(".json").read_text())
_REGISTRIES = json.loads(Path(__file__).with_name("aws_registries.json").read_text())["accounts"]
#: ``OWN`` is an account that is none of AWS's registries of deep learning containers.
_FORMS = {"ARN": r"arn:aws[\w-]*", "OWN": rf"(?!{'|'.join(_REGISTRIES)})"}
_PATTERNS = {
    kind: re.compile(re.sub("ARN|OWN", lambda match: _FORMS[match[0]], form))
    for kind, form in _FACTS["mentions"].items()
}
_OF_AWS = re.compile(r"cdk-[a-z0-9]+-|AWSServiceRole|AWS_MANAGED_KEY$")
"""The beginnings of what `cdk bootstrap` and AWS itself create."""


def mentions(value: Any) -> Iterator[Mention]:
    """Yield the resources that the properties of a resource name."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from mentions(each)
    elif isinstance(value, str) and not is_opaque(value):
        for kind, pattern in _PATTERNS.items():
            yield from (
                (kind, match[1]) for match in pattern.finditer(value) if not _OF_AWS.match(match[1])
            )


def outside(mentioned: Iterable[Mention], physical_ids: Iterable[str]) -> dict[str, list[str]]:
    """Return what is mentioned and was never created, by kind;
    stacks have or had the physical IDs.
    """
    created = {re.split("[:/]", each)[-1] for each in physical_ids}
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
    exists = any(each.name == name for each in api.backend("iam").roles.values())
    return _is_assumed(api, exists, ("role", name), "CreateRole", RoleName=name)


def is_deleted_repository(api: ServiceApi, account: str, region: str, name: str) -> bool:
    """Return whether an image repository was created in this account, and exists no more."""
    if (account, region) != (api.account, api.region) or name in api.backend("ecr").repositories:
        return False
    created = (each for _, operation, each in api.calls if operation == "CreateRepository")
    return any(each["repositoryName"] == name for each in created)


def expect_created(api: ServiceApi, operation: str, **member: str) -> None:
    """Raise ``NotSimulatedError`` for what a stack names and none has created, such as an endpoint.

    It may exist in AWS, so that a request which needs it is not an error.
    """
    created = (each for _, name, each in api.calls if name == operation)
    # What the running operation creates later is in the stacks, and does not exist yet.
    is_awaited = any((operation, *each) in api.awaited for each in member.items())
    is_created = any(member.items() <= each.items() for each in created)
    if api.assumes_existing and not is_awaited and not is_created:
        raise NotSimulatedError(f"{', '.join(member.values())} exists outside of the stacks")


def _is_assumed(
    api: ServiceApi, exists: bool, mention: Mention, operation: str, **member: str
) -> bool:
    if exists:
        return mention in api.assumed
    created = (each for _, name, each in api.calls if name == operation)
    return api.assumes_existing and not any(member.items() <= each.items() for each in created)


def assume_role(api: ServiceApi, role: str) -> None:
    """Create a role that exists outside the stacks, with every permission,
    unless it was created before.
    """
    name = role.rpartition("/")[2]
    iam = api.backend("iam")
    exists = any(known.name == name for known in iam.roles.values())
    if not exists and is_assumed_role(api, role):
        api.assumed.add(("role", name))
        add_role(iam, name, json.dumps(_FACTS["any service"]), json.dumps(_FACTS["everything"]))


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
        for resource in list(api.opaque.values()):
            yield from library.places_of(*resource)


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
        for each in api.opaque.values():
            yield from (
                highest for name, highest in library.targets_of(*each) if name == resource_id
            )


def _assume_bucket(api: ServiceApi, name: str) -> None:
    if name not in api.backend("s3").buckets and is_assumed_bucket(api, name):
        api.assumed.add(("bucket", name))
        add_bucket(api.backend("s3"), name, api.region)


def _read(api: ServiceApi, bucket: str, key: str) -> bytes | None:
    found = api.backend("s3").buckets.get(bucket)
    stored = None if found is None else found.keys.get(key)
    content: bytes | None = getattr(stored, "value", None)  # a template alone has no assets
    return content
