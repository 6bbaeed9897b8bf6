"""When a change of a conditional property replaces a resource, for the types whose rule is public.

The resource schemas only list these properties (``conditionalCreateOnlyProperties``). The handlers
of RDS say when they refuse an update, whereupon CloudFormation replaces the resource. Source:
aws-cloudformation/aws-cloudformation-resource-providers-rds, ``ImmutabilityHelper`` of
aws-rds-dbinstance and aws-rds-dbcluster, in its version of July 2025.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from constructs_triton_core.cloud_assembly.unknown_values import contains_unknown

__all__ = ["replaces"]

Properties = Mapping[str, Any]
_INSTANCE = "AWS::RDS::DBInstance"
_CLUSTER = "AWS::RDS::DBCluster"
#: Those that the handlers never refuse.
_IN_PLACE = {
    _INSTANCE: (
        "AutoMinorVersionUpgrade",
        "BackupRetentionPeriod",
        "DBParameterGroupName",
        "MultiAZ",
        "PreferredMaintenanceWindow",
    ),
}
#: The engines that become another one without a replacement.
_CONVERTED = {
    ("aurora", "aurora-mysql"),
    ("oracle-se", "oracle-se2"),
    ("oracle-se1", "oracle-se2"),
    ("oracle-ee", "oracle-ee-cdb"),
    ("oracle-se2", "oracle-se2-cdb"),
}


def replaces(type: str, name: str, old: Properties, new: Properties) -> bool | None:
    """Return whether a changed property replaces the resource; ``None`` if this is not known.

    Args:
        type: The type of the resource.
        name: The property, which differs.
        old: The properties before the update.
        new: The properties after it.
    """
    if name in _IN_PLACE.get(type, ()):
        return False
    rule = _RULES.get(type, {}).get(name)
    if rule is None or _has_function([old.get(name), new.get(name)]):
        return None
    return rule(old, new)


def _engine(old: Properties, new: Properties) -> bool | None:
    """Another engine, but for the few that RDS converts."""
    before, after = old.get("Engine"), new.get("Engine")
    if not before or not after:  # then the engine is that of the snapshot or the source
        return None
    return (str(before).lower(), str(after).lower()) not in _CONVERTED


def _availability_zone(_: Properties, new: Properties) -> bool | None:
    """Another Zone, but for none of an instance in several Zones."""
    if new.get("AvailabilityZone"):
        return True
    if _has_function(new.get("MultiAZ")):
        return None
    return str(new.get("MultiAZ")).lower() != "true"


def _is_given(name: str) -> Callable[[Properties, Properties], bool]:
    """A restoration from something else; without the property, the data stays as it is."""
    return lambda _, new: bool(new.get(name)) and str(new.get(name)).lower() != "false"


def _insights_key(old: Properties, _: Properties) -> bool:
    """Another key than the one that is used; the first one is set in place."""
    return bool(old.get("PerformanceInsightsKMSKeyId"))


_RESTORATIONS = (
    "DBClusterSnapshotIdentifier",
    "DBSnapshotIdentifier",
    "RestoreTime",
    "SourceDBClusterIdentifier",
    "SourceDBInstanceAutomatedBackupsArn",
    "SourceDBInstanceIdentifier",
    "SourceDbiResourceId",
    "UseLatestRestorableTime",
)
_RULES: Mapping[str, Mapping[str, Callable[[Properties, Properties], bool | None]]] = {
    _INSTANCE: {
        "AvailabilityZone": _availability_zone,
        "Engine": _engine,
        "PerformanceInsightsKMSKeyId": _insights_key,
        **{name: _is_given(name) for name in _RESTORATIONS},
    },
    _CLUSTER: {
        "Engine": _engine,
        "GlobalClusterIdentifier": _is_given("GlobalClusterIdentifier"),
    },
}


def _has_function(value: Any) -> bool:
    """Whether a value is decided at deployment only: by a function, or not known at all."""
    if isinstance(value, list):
        return any(map(_has_function, value))
    return isinstance(value, Mapping) or contains_unknown(value)
