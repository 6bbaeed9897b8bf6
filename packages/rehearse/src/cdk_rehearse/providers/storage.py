"""S3: bucket, its policy, and what empties it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from ..errors import NotSimulatedError
from .called import CalledResource
from .provider import Deployed, Physical, Provider, Request


def _encryption(value: Mapping[str, Any]) -> dict[str, Any]:
    rules = [_encryption_rule(rule) for rule in value["ServerSideEncryptionConfiguration"]]
    return {"ServerSideEncryptionConfiguration": {"Rules": rules}}


def _encryption_rule(rule: Mapping[str, Any]) -> dict[str, Any]:
    """A rule of a template, whose ``ServerSideEncryptionByDefault`` has another name in S3."""
    return {name.replace("ServerSide", "ApplyServerSide", 1): value for name, value in rule.items()}


def _logging(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the LoggingConfiguration of a bucket as S3 expects it."""
    members = {"DestinationBucketName": "TargetBucket", "LogFilePrefix": "TargetPrefix"}
    others = sorted(value.keys() - members.keys())
    if others:
        raise NotSimulatedError(f"LoggingConfiguration: {others}")

    target = {"TargetPrefix": ""}
    target |= {members[name]: setting for name, setting in value.items()}
    return {"BucketLoggingStatus": {"LoggingEnabled": target}}


def _lifecycle(value: Mapping[str, Any]) -> dict[str, Any]:
    rules = [_lifecycle_rule(rule) for rule in value["Rules"]]
    return {"LifecycleConfiguration": {"Rules": rules}}


def _lifecycle_rule(rule: Mapping[str, Any]) -> dict[str, Any]:
    """Return a lifecycle rule of CloudFormation as S3 expects it."""
    known = {"Id", "Status", "Prefix", "ExpirationInDays"} | {*_SAME_IN_LIFECYCLE}
    others = sorted(rule.keys() - known)
    if others:
        raise NotSimulatedError(f"LifecycleConfiguration: {others} is not supported")

    selection = {"Prefix": rule.get("Prefix", "")}
    wanted: dict[str, Any] = {"Status": rule["Status"], "Filter": selection}
    if "Id" in rule:
        wanted["ID"] = rule["Id"]
    if "ExpirationInDays" in rule:
        wanted["Expiration"] = {"Days": rule["ExpirationInDays"]}
    return wanted | {name: rule[name] for name in _SAME_IN_LIFECYCLE if name in rule}


_SAME_IN_LIFECYCLE = ("NoncurrentVersionExpiration", "AbortIncompleteMultipartUpload")
_LOG_DELIVERY = "uri=http://acs.amazonaws.com/groups/s3/LogDelivery"
#: The grants of the canned ACL of log buckets, which is not in the service model.
_ACL = {
    "Private": {"ACL": "private"},
    "LogDeliveryWrite": {"GrantWrite": _LOG_DELIVERY, "GrantReadACP": _LOG_DELIVERY},
}


def _acl(value: str) -> dict[str, Any]:
    if value not in _ACL:
        raise NotSimulatedError(f"AccessControl {value} is not simulated")
    return _ACL[value]


#: Property, the operation that sets it, the operation that removes it.
_SETTINGS = json.loads(Path(__file__).with_name("bucket_settings.json").read_text())
#: The members for a property; for the others they are the property itself.
_MEMBERS: Mapping[str, Callable[[Any], dict[str, Any]]] = {
    "BucketEncryption": _encryption,
    "AccessControl": _acl,
    "LifecycleConfiguration": _lifecycle,
    "LoggingConfiguration": _logging,
    "Tags": lambda value: {"Tagging": {"TagSet": value}},
}


class Bucket(Provider):
    type = "AWS::S3::Bucket"
    name_property = "BucketName"
    deletion = ("s3", "DeleteBucket", "Bucket")

    def create(self, request: Request) -> Physical:
        name = self.name(request).lower()
        self.api.create_bucket(name)
        self._set(request, name, {})
        return Physical(name, self._attributes(name))

    def update(self, current: Deployed, request: Request) -> Physical:
        self._set(request, current.physical.id, current.properties)
        return current.physical

    def _set(self, request: Request, name: str, old: Mapping[str, Any]) -> None:
        """Set each setting that changes, and note those that are not simulated."""
        new = self.simulated(request, "BucketName", *_SETTINGS)
        for setting in _SETTINGS:
            if old.get(setting) == new.get(setting):
                continue
            try:
                self._set_one(setting, name, new.get(setting))
            except NotSimulatedError:
                self.api.note_not_simulated(
                    f"{self.type}.{setting}", request.stack_name, request.logical_id
                )

    def _set_one(self, setting: str, name: str, value: Any) -> None:
        """Set or remove one setting of a bucket."""
        put, delete = _SETTINGS[setting]
        if value is not None:
            members = _MEMBERS[setting](value) if setting in _MEMBERS else {setting: value}
            self.api.call("s3", put, Bucket=name, **members)
            return
        if delete is None:
            raise NotSimulatedError(f"{self.type}: {setting} cannot be removed")
        self.api.call("s3", delete, Bucket=name)

    def _attributes(self, name: str) -> dict[str, str]:
        """Return what ``Fn::GetAtt`` can read of a bucket."""
        region = self.api.region
        return {
            "Arn": f"arn:aws:s3:::{name}",
            "DomainName": f"{name}.s3.amazonaws.com",
            "RegionalDomainName": f"{name}.s3.{region}.amazonaws.com",
            "DualStackDomainName": f"{name}.s3.dualstack.{region}.amazonaws.com",
            "WebsiteURL": f"http://{name}.s3-website-{region}.amazonaws.com",
        }


class BucketPolicy(CalledResource):
    type = "AWS::S3::BucketPolicy"
    service = "s3"
    create_operation = "PutBucketPolicy"
    update_operation = "PutBucketPolicy"
    delete_operation = "DeleteBucketPolicy"
    renamed: ClassVar = {"PolicyDocument": "Policy"}

    def physical(self, found: Mapping[str, Any]) -> Physical:
        return Physical(str(found["Bucket"]))

    def key(self, current: Deployed) -> dict[str, Any]:
        return {"Bucket": current.physical.id}


class AutoDeleteObjects(Provider):
    """Empties a bucket before it is deleted, as the CDK's function for
    ``auto_delete_objects`` does.
    """

    type = "Custom::S3AutoDeleteObjects"

    def create(self, request: Request) -> Physical:
        return Physical(f"{request.logical_id}-{request.properties['BucketName']}")

    def update(self, current: Deployed, _: Request) -> Physical:
        return current.physical

    def delete(self, current: Deployed) -> None:
        """Delete all versions of all objects of the bucket."""
        bucket = current.properties["BucketName"]
        pages = self.api.client("s3").get_paginator("list_object_versions").paginate(Bucket=bucket)
        # The pages are read first, since a deletion would move what is on the next one.
        found = []
        for page in pages:
            found += [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]
        for version in found:
            identity = {"Key": version["Key"], "VersionId": version["VersionId"]}
            self.api.call("s3", "DeleteObject", Bucket=bucket, **identity)
