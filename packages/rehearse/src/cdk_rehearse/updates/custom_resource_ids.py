"""Custom resources whose functions delete something in an update.

CloudFormation takes another physical ID for a replacement: in its cleanup, it sends the function a
``Delete`` for the old one. Source: CloudFormation User Guide, "Custom resource response objects".

The ID is known of the CDK's own functions, whose code decides it by the properties. Source:
aws-cdk-lib, custom-resource-handlers/dist/.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

__all__ = ["IdChange", "deleted_destination", "deleted_subject", "id_change", "sdk_call"]

#: What a call of ``AwsCustomResource`` writes in place of the physical ID. Source: aws-cdk-lib,
#: custom-resources, PhysicalResourceIdReference.
_OWN_ID = "PHYSICAL:RESOURCEID:"


class IdChange(NamedTuple):
    """The two physical IDs, and what ``Delete`` does with the old one."""

    before: str
    after: str
    deletes: str


def id_change(
    type: str, logical_id: str, old: Mapping[str, Any], new: Mapping[str, Any]
) -> IdChange | None:
    """Return how the physical ID of a custom resource changes.

    ``None`` if it does not, if it is not known, or if ``Delete`` does nothing.
    """
    if type == "Custom::AWS":
        return _of_sdk_calls(logical_id, old, new)
    if type == "Custom::LogRetention" and old.get("RemovalPolicy") == "destroy":
        deletes = f"deletes the log group {old.get('LogGroupName')}"
        return _if_changed(old.get("LogGroupName"), new.get("LogGroupName"), deletes)
    return None


def _of_sdk_calls(
    logical_id: str, old: Mapping[str, Any], new: Mapping[str, Any]
) -> IdChange | None:
    """The ID of the CDK's ``AwsCustomResource``, which a call can set at each request.

    An update without a call, or with one that sets no ID, keeps the present one.
    """
    deleting = sdk_call(old, "Delete")
    update = sdk_call(new, "Update")
    if deleting is None or update is None:
        return None

    # The last call that set an ID has decided it.
    before = _id(sdk_call(old, "Update")) or _id(sdk_call(old, "Create")) or _id(deleting)
    before = before or logical_id
    deletes = f"calls {deleting.get('service')}.{deleting.get('action')}"
    return _if_changed(before, _id(update), deletes)


def _if_changed(before: Any, after: Any, deletes: str) -> IdChange | None:
    """Return the change of an ID; ``None`` if it stays, or if one of the two is not known."""
    is_known = isinstance(before, str) and isinstance(after, str) and before and after
    if not is_known or before == after:
        return None
    return IdChange(before, after, deletes)


def sdk_call(properties: Mapping[str, Any], request: str) -> Mapping[str, Any] | None:
    """Return the call of a request, which the CDK writes as JSON; ``None`` if there is none.

    Args:
        properties: The properties of an ``AwsCustomResource``.
        request: ``Create``, ``Update`` or ``Delete``.
    """
    text = properties.get(request)
    try:
        found = json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return None
    return found if isinstance(found, Mapping) else None


def _id(call: Mapping[str, Any] | None) -> str:
    """The physical ID that a call sets; empty if it sets none, or one that its response has."""
    given = (call or {}).get("physicalResourceId")
    found = given.get("id") if isinstance(given, Mapping) else None
    return found if isinstance(found, str) else ""


def deleted_destination(
    type: str, old: Mapping[str, Any], new: Mapping[str, Any] | None
) -> tuple[Any, str] | None:
    """Return the bucket and the prefix whose objects the CDK's BucketDeployment deletes.

    With ``retain_on_delete=False``, its function deletes everything under the destination, also
    what it did not deploy, when the deployment is removed or gets another destination. Source:
    aws-cdk-lib, aws-s3-deployment/bucket-deployment-handler.

    Args:
        type: The type of the custom resource.
        old: Its properties before the update.
        new: Its properties after the update; ``None`` if it is removed.
    """
    if type != "Custom::CDKBucketDeployment":
        return None
    # An update asks with the new properties, and a deletion with the old ones.
    asked = old if new is None else new
    if str(asked.get("RetainOnDelete", "true")).lower() == "true":
        return None

    before = _destination(old)
    after = _destination(new or {})
    return None if before == after else before


def deleted_subject(type: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Return what a custom resource deletes although another one is still about it.

    CloudFormation creates a resource under its new logical ID first, and deletes the old one
    afterwards. Where both are about the same thing, nothing of it remains. Empty if they are not,
    or if it is not known. Source: aws/aws-cdk#4717; aws-cdk-lib, custom-resource-handlers and
    aws-eks/lib/kubectl-handler.

    Args:
        type: The type of both.
        old: The properties of the one that the update removes.
        new: The properties of the one that it creates.
    """
    rule = _SUBJECTS.get(type)
    return "" if rule is None else rule(old, new)


def _same_call(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Return what both resources call at their deletion; "" if it may differ."""
    deleting = sdk_call(old, "Delete")
    if deleting is None or deleting != sdk_call(new, "Delete"):
        return ""

    is_by_id = _OWN_ID in json.dumps(deleting)
    if is_by_id:
        old_id = _id(sdk_call(old, "Create"))
        if not old_id or old_id != _id(sdk_call(new, "Create")):
            return ""
    return f"calls {deleting.get('service')}.{deleting.get('action')}"


def _same_manifest(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Return what the old manifest deletes of the new one; "" if nothing is known."""
    if old.get("ClusterName") != new.get("ClusterName"):
        return ""
    both = sorted(_objects(old) & _objects(new))
    if both:
        return f"deletes {' and '.join(both)}"
    is_equal = old.get("Manifest") == new.get("Manifest") and old.get("Manifest") is not None
    return "deletes what its manifest names" if is_equal else ""


def _objects(properties: Mapping[str, Any]) -> set[str]:
    """Kind, namespace and name of the objects of a manifest; none if a function makes it."""
    try:
        found = json.loads(str(properties.get("Manifest")))
    except ValueError:
        return set()
    if not isinstance(found, list):
        return set()

    names = set()
    for item in found:
        metadata = item.get("metadata") if isinstance(item, Mapping) else None
        if isinstance(metadata, Mapping) and metadata.get("name"):
            parts = (item.get("kind"), metadata.get("namespace"), metadata["name"])
            names.add("/".join(str(part) for part in parts if part))
    return names


def _same_release(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    names = ("ClusterName", "Namespace", "Release")
    is_same = all(old.get(name) == new.get(name) for name in names) and old.get("Release")
    return f"uninstalls the release {old['Release']}" if is_same else ""


def _same_log_group(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    group = old.get("LogGroupName")
    is_deleted = old.get("RemovalPolicy") == "destroy" and group
    is_same = is_deleted and group == new.get("LogGroupName")
    return f"deletes the log group {group}" if is_same else ""


def _same_bucket(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    bucket = old.get("BucketName")
    is_same = bucket is not None and bucket == new.get("BucketName")
    return "removes the notifications of the bucket" if is_same else ""


_SUBJECTS: Mapping[str, Callable[[Mapping[str, Any], Mapping[str, Any]], str]] = {
    "Custom::AWS": _same_call,
    "Custom::AWSCDK-EKS-HelmChart": _same_release,
    "Custom::AWSCDK-EKS-KubernetesResource": _same_manifest,
    "Custom::LogRetention": _same_log_group,
    "Custom::S3BucketNotifications": _same_bucket,
}


def _destination(properties: Mapping[str, Any]) -> tuple[Any, str]:
    prefix = str(properties.get("DestinationBucketKeyPrefix") or "")
    return properties.get("DestinationBucketName"), "" if prefix == "/" else prefix
