"""The stack of the tests of instance pools, synthesized once for each of its states."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from constructs_triton import (
    InstancePool,
    InstanceType,
    ModelSource,
    TritonComponentEndpoint,
    TritonEndpoint,
    TritonImage,
    TritonInferenceComponent,
    TritonModelRepository,
)
from triton_model_check.facts.images import image_version

STACK, SHARED = "Pooled", "Shared"
L4, A10G, T4 = "ml.g6.2xlarge", "ml.g5.2xlarge", "ml.g4dn.2xlarge"
_CONFIG = """name: "ranker"
platform: "tensorrt_plan"
max_batch_size: 8
input { name: "x" data_type: TYPE_FP32 dims: 4 }
output { name: "y" data_type: TYPE_FP32 dims: 4 }
"""
_LOADS = {L4: 12, A10G: 16, T4: 7}


@dataclass(frozen=True)
class State:
    """The types in order of priority, each with a plan of its own,
    and whether the last resource fails.
    """

    types: tuple[str, ...]
    has_guard: bool = True
    is_broken: bool = False


_FIRST = State((L4, A10G))
STATES = {
    "first": _FIRST,
    "reordered": State((A10G, L4)),
    "three": State((L4, A10G, T4)),
    "one": State((A10G,)),
    "broken": replace(State((T4, L4)), is_broken=True),
    "unguarded": replace(_FIRST, has_guard=False),
    "unguarded_reordered": State((A10G, L4), has_guard=False),
}


class PooledStack(cdk.Stack):
    """A scaled endpoint with a TensorRT plan for the GPU of each instance type."""

    def __init__(self, scope: Construct, id: str, *, plans: Path, state: State) -> None:
        super().__init__(scope, id)
        repositories = {
            name: TritonModelRepository(
                self, f"Plan{name.split('.')[1]}", source=ModelSource.from_directory(plans / name)
            )
            for name in state.types
        }
        first, *others = state.types
        pools = [InstancePool(InstanceType.of(first))]
        pools += [
            InstancePool(InstanceType.of(each), model_repository=repositories[each])
            for each in others
        ]
        self.endpoint = TritonEndpoint(
            self,
            "Ranker",
            model_repository=repositories[first],
            instance_pools=pools,
            scaling_guard=state.has_guard,
        )
        count = self.endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=4)
        if others:
            loads = {name: _LOADS[name] for name in state.types}
            count.scale_on_concurrent_requests_by_type("Load", max_concurrent_requests=loads)
        else:
            count.scale_on_concurrent_requests("Load", target_concurrent_requests=_LOADS[first])
        if state.is_broken:
            cloudwatch.CfnDashboard(self, "Broken", dashboard_body="not json").node.add_dependency(
                count
            )
        cdk.CfnOutput(self, "Name", value=self.endpoint.endpoint_name)


class SharedStack(cdk.Stack):
    """A component with a plan for the GPU of each instance type of its endpoint."""

    def __init__(self, scope: Construct, id: str, *, plans: Path) -> None:
        super().__init__(scope, id)
        first, second = (
            TritonModelRepository(
                self, f"Plan{name.split('.')[1]}", source=ModelSource.from_directory(plans / name)
            )
            for name in (L4, A10G)
        )
        endpoint = TritonComponentEndpoint(
            self,
            "Shared",
            instance_pools=[InstancePool(InstanceType.of(name)) for name in (L4, A10G)],
            min_instance_count=1,
            max_instance_count=2,
        )
        TritonInferenceComponent(
            self,
            "Ranker",
            endpoint=endpoint,
            model_repository=first,
            instance_pools=[InstancePool(InstanceType.of(A10G), model_repository=second)],
            min_memory=cdk.Size.gibibytes(2),
            number_of_accelerator_devices=1,
        )
        cdk.CfnOutput(self, "Name", value=endpoint.endpoint_name)


def write_plan(directory: Path, content: bytes) -> None:
    """Write a repository with one plan; TensorRT reads no more of it than its
    header before it loads it.
    """
    version = image_version(TritonImage.dlc().triton_version or "").tensorrt or "10"
    numbers = bytes([*(int(part) for part in version.split(".")), 0, 0, 0, 0][:4])
    (directory / "ranker" / "1").mkdir(parents=True)
    (directory / "ranker" / "config.pbtxt").write_text(_CONFIG)
    (directory / "ranker" / "1" / "model.plan").write_bytes(b"ftrt" + bytes(20) + numbers + content)


def synthesize_states(directory: Path) -> Path:
    """Write the assembly of each state to a folder of its name below the directory."""
    for name in _LOADS:
        write_plan(directory / "plans" / name, name.encode())
    for name, state in STATES.items():
        app = cdk.App(outdir=str(directory / name), builtin_cloud_formation_validation=False)
        PooledStack(app, STACK, plans=directory / "plans", state=state)
        app.synth()
    app = cdk.App(outdir=str(directory / "components"), builtin_cloud_formation_validation=False)
    SharedStack(app, SHARED, plans=directory / "plans")
    app.synth()
    return directory
