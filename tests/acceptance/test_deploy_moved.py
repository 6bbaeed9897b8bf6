"""An endpoint moves to the stack of its repository,
on the road that the guide to models describes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_sns as sns
from files_app import add_single, write_models
from files_states import State as Content

from cdk_rehearse import SimulatedAccount
from constructs_triton import ModelSource, TritonModelRepository

BUDGET_MINUTES = 2


@dataclass(frozen=True)
class Road:
    """The steps of the road: where the endpoint is, and whether old models are deleted."""

    is_outside: bool = True
    is_inside: bool = False
    prune_after: cdk.Duration | None = None


def synthesize(folder: Path, models: Path, road: Road) -> Path:
    """Write the stacks of a step: ``Models`` with the repository, and ``Users``."""
    app = cdk.App(outdir=str(folder), builtin_cloud_formation_validation=False)
    inside, outside = cdk.Stack(app, "Models"), cdk.Stack(app, "Users")
    source = ModelSource.from_directory(models)
    repository = TritonModelRepository(
        inside, "Models", source=source, prune_after=road.prune_after
    )
    sns.Topic(outside, "News")  # a stack needs a resource
    if road.is_outside:
        add_single(outside, repository, endpoint_name="old")
    if road.is_inside:
        add_single(inside, repository, endpoint_name="new")
    app.synth()
    return folder


def test_endpoint_moves_to_the_stack_of_its_repository(tmp_path: Path) -> None:
    """At each step an endpoint serves and can read its models, and pruning comes last."""
    models = write_models(tmp_path / "models", Content())
    both = Road(is_inside=True)
    moved = replace(both, is_outside=False)
    steps = [
        (Road(), ("Models", "Users"), ["old"]),
        (both, ("Models",), ["new", "old"]),
        (moved, ("Users", "Models"), ["new"]),
        (replace(moved, prune_after=cdk.Duration.days(30)), ("Models",), ["new"]),
    ]
    with SimulatedAccount() as aws:
        aws.bootstrap()
        for number, (road, stacks, serving) in enumerate(steps):
            assembly = synthesize(tmp_path / f"step-{number}", models, road)
            for name in stacks:
                stack = aws.deploy(assembly, name)
                assert stack.status in ("CREATE_COMPLETE", "UPDATE_COMPLETE"), stack.reason
            found = aws.client("sagemaker").list_endpoints()["Endpoints"]
            assert sorted(each["EndpointName"] for each in found) == serving
        assert aws.fleets.losses == []
