"""What replaces a database, of the properties that the schemas call conditional."""

from __future__ import annotations

from typing import Any

import pytest

from cdk_rehearse.services.conditional_replacements import replaces
from cdk_rehearse.services.resource_schemas import resource_schema

INSTANCE, CLUSTER = "AWS::RDS::DBInstance", "AWS::RDS::DBCluster"


@pytest.mark.parametrize(
    ("type", "name", "old", "new", "expected"),
    [
        (INSTANCE, "Engine", "mysql", "postgres", True),
        (INSTANCE, "Engine", "oracle-se1", "oracle-se2", False),
        (INSTANCE, "Engine", "mysql", None, None),
        (INSTANCE, "Engine", "mysql", {"Fn::ImportValue": "engine"}, None),
        (CLUSTER, "Engine", "aurora", "aurora-mysql", False),
        (CLUSTER, "MasterUsername", "a", "b", None),
        (CLUSTER, "GlobalClusterIdentifier", "world", None, False),
        (INSTANCE, "MultiAZ", False, True, False),
        (INSTANCE, "AvailabilityZone", "us-east-1a", "us-east-1b", True),
        (INSTANCE, "DBSnapshotIdentifier", "s", None, False),
        (INSTANCE, "DBSnapshotIdentifier", "s", "t", True),
        (INSTANCE, "UseLatestRestorableTime", True, False, False),
        (INSTANCE, "PerformanceInsightsKMSKeyId", None, "key", False),
        (INSTANCE, "PerformanceInsightsKMSKeyId", "key", "other", True),
        ("AWS::ECS::Service", "LaunchType", "EC2", "FARGATE", None),
    ],
)
def test_handlers_of_rds_decide(
    type: str, name: str, old: Any, new: Any, expected: bool | None
) -> None:
    """A change is replaced or not as AWS's handler does it, and unknown where no handler says."""
    before = {} if old is None else {name: old}
    after = {} if new is None else {name: new}
    assert replaces(type, name, before, after) is expected

    schema = resource_schema(type)
    assert (name in schema.replacing_changes(before, after)) is (expected is True)
    assert (name in schema.possibly_replacing_changes(before, after)) is (expected is None)
