"""Custom resources whose functions delete something in an update.

CloudFormation takes another physical ID for a replacement: in its cleanup, it sends the function a
``Delete`` for the old one. Source: CloudFormation User Guide, "Custom resource response objects".

The ID is known of the CDK's own functions, whose code decides it by the properties. Source:
aws-cdk-lib, custom-resource-handlers/dist/.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["IdChange", "deleted_destination", "id_change"]


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
    deleting = _call(old, "Delete")
    update = _call(new, "Update")
    if deleting is None or update is None:
        return None
    former = [_id(call) for call in (_call(old, "Update"), _call(old, "Create"), deleting)]
    before = next((each for each in former if each), logical_id)
    deletes = f"calls {deleting.get('service')}.{deleting.get('action')}"
    return _if_changed(before, _id(update), deletes)


def _if_changed(before: Any, after: Any, deletes: str) -> IdChange | None:
    is_known = isinstance(before, str) and isinstance(after, str) and before and after
    return IdChange(before, after, deletes) if is_known and before != after else None


def _call(properties: Mapping[str, Any], request: str) -> Mapping[str, Any] | None:
    """The call of a request, which the CDK writes as JSON; ``None`` if there is none."""
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
    before, after = _destination(old), _destination(new or {})
    return None if before == after else before


def _destination(properties: Mapping[str, Any]) -> tuple[Any, str]:
    prefix = str(properties.get("DestinationBucketKeyPrefix") or "")
    return properties.get("DestinationBucketName"), "" if prefix == "/" else prefix
