"""What CloudFormation does for each edit of an app: what it replaces, updates,
refuses and leaves alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from aws_cdk import RemovalPolicy
from edits_app import Version, synthesize
from parts import part

from cdk_rehearse import rehearse
from constructs_triton import CompressionType, InstanceType

BUDGET_MINUTES = 2

ONE, SCALED, NAMED = Version(), Version(scaled_to=4), Version(options={"endpoint_name": "e"})
FILES = Version(options={"compression_type": CompressionType.NONE})
MANY, COMPONENT = (
    Version("many", models={"removal_policy": RemovalPolicy.DESTROY}),
    Version("component"),
)
LARGER = {"instance_type": InstanceType.of("ml.c6i.2xlarge")}
GUARDED = replace(SCALED, options={"scaling_guard": True})
TWO = Version(variants=("a", "b"))
SHARED = replace(FILES, is_shared=True)

NEW_CONFIG = ["replace EndpointConfig", "update Endpoint"]
NEW_MODEL = ["replace ManagedPolicy", "replace Model", *NEW_CONFIG]
NEW_PREFIX = [
    "replace ManagedPolicy",
    "replace ManagedPolicy",
    "update TritonModelSync",
    *NEW_MODEL[1:],
]
FUNCTION = ["LogGroup", "Role", "Policy", "Policy", "Function"]


@dataclass(frozen=True)
class Edit:
    """Two versions, and the steps before the cleanup phase.

    ``problems`` are their codes, and ``left`` is what the update leaves without a stack.
    """

    old: Version
    new: Version
    steps: list[str]
    problems: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    orders: int = 1


EDITS = {
    "image": Edit(ONE, Version(image="25.09"), NEW_MODEL),
    "instance type, scaled": Edit(
        SCALED,
        replace(SCALED, options=LARGER),
        ["replace EndpointConfig"],
        ("rehearse-update-fails",),
    ),
    "instance type, guarded": Edit(
        GUARDED,
        replace(GUARDED, options={**GUARDED.options, **LARGER}),
        [
            "replace EndpointConfig",
            "update TritonScalingSweeper",
            "update TritonScalingGate",
            "update Endpoint",
            "update TritonScalableTarget",
            "update TritonScalingPolicy",
        ],
    ),
    "content, archive": Edit(ONE, Version(label=2), NEW_MODEL),
    "content, files": Edit(
        FILES,
        replace(FILES, label=2),
        [
            "replace ManagedPolicy",
            "replace ManagedPolicy",
            "update TritonModelFiles",
            *NEW_MODEL[1:],
        ],
    ),
    "content, multi-model": Edit(
        MANY, replace(MANY, label=2), ["replace ManagedPolicy", "update TritonModelSync"]
    ),
    "variant added": Edit(
        Version(variants=("a",)), TWO, ["replace ManagedPolicy", "create Model", *NEW_CONFIG]
    ),
    "variant removed": Edit(TWO, Version(variants=("a",)), ["replace ManagedPolicy", *NEW_CONFIG]),
    "scaled variant removed": Edit(
        replace(TWO, scaled_to=4),
        Version(variants=("a",)),
        ["replace ManagedPolicy", "replace EndpointConfig"],
        ("rehearse-update-fails",),
    ),
    "scaling max": Edit(SCALED, replace(SCALED, scaled_to=8), ["update ScalableTarget"]),
    "component memory": Edit(
        COMPONENT, replace(COMPONENT, memory=3), ["update InferenceComponent"]
    ),
    "endpoint_name": Edit(
        NAMED,
        Version(options={"endpoint_name": "f"}),
        ["replace Endpoint"],
        ("rehearse-endpoint-replaced",),
    ),
    "volume key": Edit(
        ONE, Version(options={"encryption_key": "K"}), ["replace ManagedPolicy", *NEW_CONFIG]
    ),
    "VPC": Edit(ONE, Version(options={"vpc": "vpc"}), ["create SecurityGroup", *NEW_MODEL]),
    "construct renamed": Edit(
        ONE,
        Version(name="F"),
        [
            f"create {each}"
            for each in ("Role", "ManagedPolicy", "Model", "EndpointConfig", "Endpoint")
        ],
        ("rehearse-endpoint-replaced",),
    ),
    "construct with endpoint_name renamed": Edit(
        NAMED,
        replace(NAMED, name="F"),
        [f"create {each}" for each in ("Role", "ManagedPolicy", "Model", "EndpointConfig")],
        ("rehearse-name-collision",),
    ),
    "one of two endpoints removed": Edit(
        Version(has_second=True), ONE, [], ("rehearse-serving-stops",)
    ),
    "archive to files": Edit(
        ONE,
        FILES,
        [
            *(f"create {each}" for each in ("Bucket", "BucketPolicy", "ManagedPolicy", *FUNCTION)),
            "create TritonModelFiles",
            *NEW_MODEL,
        ],
    ),
    "prefix": Edit(MANY, replace(MANY, models={**MANY.models, "prefix": "other/"}), NEW_PREFIX),
    "bucket": Edit(
        MANY, replace(MANY, models={"bucket": "bucket"}), NEW_PREFIX, ("rehearse-data-replaced",)
    ),
    "repository KMS key": Edit(
        MANY,
        replace(MANY, models={**MANY.models, "encryption_key": "K"}),
        [
            "update Bucket",
            "replace ManagedPolicy",
            "replace ManagedPolicy",
            "update TritonModelSync",
        ],
    ),
    "scaling removed": Edit(
        SCALED, ONE, ["update Endpoint"], ("rehearse-fleet-shrinks",), orders=2
    ),
    "scaling removed, counts retained": Edit(SCALED, Version(keeps_counts=True), []),
    "guard on a scaled endpoint": Edit(
        SCALED,
        GUARDED,
        [
            *(f"create {each}" for each in (*FUNCTION, "Policy")),
            "create TritonScalingSweeper",
            "create TritonScalingGate",
        ],
        ("rehearse-update-fails",),
        ("LogGroup",),
    ),
    "use of a repository in another stack removed": Edit(
        SHARED, replace(SHARED, has_reader=False), [], ("rehearse-update-fails",)
    ),
}


@pytest.mark.parametrize("name", part(EDITS))
def test_edit_replaces_and_updates(name: str, tmp_path: Path) -> None:
    """The steps are those of the table, no reader loses access,
    and a success can be undone and deleted.
    """
    edit = EDITS[name]
    versions = []
    for version in ("old", "new"):
        (tmp_path / version).mkdir()
        versions.append(synthesize(tmp_path / version, getattr(edit, version)))
    found = rehearse(*versions, failures="none", orders=edit.orders)
    steps = [
        f"{each.action} {each.type.rpartition('::')[2]}"
        for each in found.steps
        if not each.is_cleanup
    ]
    assert sorted(steps) == sorted(edit.steps)
    assert [each.code for each in found.problems] == list(edit.problems)
    assert [each.type.rpartition("::")[2] for each in found.leftovers] == list(edit.left)
    # After a failure the rehearsal does not go on.
    later = [each.succeeds for each in (found.way_back, found.deletion) if each is not None]
    assert later == ([] if found.reason else [True, True])
