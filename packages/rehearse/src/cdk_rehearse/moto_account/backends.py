"""What moto stores of each service, as far as other rooms read it.

They read collections of resources by name or ARN. What needs more than that is a function here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from moto.backends import get_backend
from moto.core.botocore_stubber import MockRawResponse as RawResponse
from moto.s3.models import FakeKey

__all__ = [
    "RawResponse",
    "Store",
    "add_bucket",
    "add_log_group",
    "add_role",
    "objects_of",
    "role_named",
    "stored",
    "tags_of",
    "variants_started",
    "vpcs_of_groups",
    "vpcs_of_subnets",
]

#: Services whose resources belong to no Region.
_GLOBAL = ("iam", "s3")
#: The collections of each service, and moto's names of those that it keeps to itself.
_COLLECTIONS: dict[str, dict[str, str]] = {
    "applicationautoscaling": {"policies": "policies", "targets": "targets"},
    "cloudwatch": {"alarms": "alarms"},
    "ec2": {},
    "ecr": {"repositories": "repositories"},
    "iam": {"managed_policies": "managed_policies", "roles": "roles"},
    "kms": {"keys": "keys"},
    "logs": {"groups": "groups"},
    "s3": {"buckets": "buckets"},
    "sagemaker": {
        "endpoint_configs": "endpoint_configs",
        "endpoints": "endpoints",
        "models": "_models",
    },
    "scheduler": {"schedule_groups": "schedule_groups"},
    "sns": {"topics": "topics"},
}
_ONE_HOUR = "3600"
_backends: Any = cache(get_backend)  # the type depends on the service's name


class Store:
    """The collections of a service."""

    def __init__(self, service: str, backend: Any) -> None:
        self._service = service
        self._backend = backend

    def __getattr__(self, collection: str) -> Any:
        names = _COLLECTIONS[self._service]
        if collection not in names:
            raise AttributeError(f"{self._service} has no collection {collection}")
        return getattr(self._backend, names[collection])


def stored(service: str, account: str, region: str) -> Store:
    """Return what an account has of a service in a Region."""
    place = "aws" if service in _GLOBAL else region
    return Store(service, _backends(service)[account][place])


# Amazon S3.


def add_bucket(s3: Store, name: str, region: str) -> None:
    """Create a bucket without a request."""
    s3._backend.create_bucket(name, region)


def objects_of(bucket: Any) -> dict[str, Any]:
    """Return the objects of a bucket by key; delete markers are none."""
    return {key: found for key, found in bucket.keys.items() if isinstance(found, FakeKey)}


def tags_of(s3: Store, found: Any) -> Mapping[str, str]:
    """Return the tags of an object."""
    tags: Mapping[str, str] = s3._backend.tagger.get_tag_dict_for_resource(found.arn)
    return tags


# AWS Identity and Access Management.


def add_role(iam: Store, name: str, trust: str, policy: str) -> None:
    """Create a role with an inline policy without a request."""
    iam._backend.create_role(name, trust, "/", None, "", [], _ONE_HOUR)
    iam._backend.put_role_policy(name, "assumed", policy)


def role_named(iam: Store, name: str) -> Any:
    """Return a role; raises ``NoSuchRoleError`` of ``refusals`` if there is none."""
    return iam._backend.get_role(name)


# Amazon CloudWatch Logs.


def add_log_group(logs: Store, name: str) -> None:
    """Create a log group without a request."""
    logs._backend.create_log_group(name, {})


# Amazon EC2.


def vpcs_of_subnets(ec2: Store, subnets: list[str]) -> set[str]:
    """Return the VPCs of those of these subnets that exist."""
    return {found.vpc_id for found in ec2._backend.describe_subnets() if found.id in subnets}


def vpcs_of_groups(ec2: Store, groups: list[str]) -> dict[str, str]:
    """Return the VPC of each of these security groups that exists."""
    found = map(ec2._backend.get_security_group_from_id, groups)
    return {group.id: group.vpc_id for group in found if group is not None}


# Amazon SageMaker.


def variants_started(endpoint: Any, variants: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the variants of a configuration as an endpoint runs them, with their counts."""
    started: list[dict[str, Any]] = endpoint._process_production_variants(variants)
    return started
