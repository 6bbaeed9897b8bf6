"""The stack of the tests of ``off_switch``, synthesized once for each of its states, on and off."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from constructs_triton import (
    InstanceType,
    ModelSource,
    OffSwitch,
    TritonEndpoint,
    TritonModelRepository,
    TritonMultiModelEndpoint,
)

STACK, ENDPOINT, PARAMETER = "Switched", "switched", "NightRunning"
_CONFIG = """name: "echo"
backend: "python"
max_batch_size: 8
input { name: "x" data_type: TYPE_FP32 dims: 4 }
output { name: "y" data_type: TYPE_FP32 dims: 4 }
instance_group { kind: KIND_CPU }
"""
_MODEL = """class TritonPythonModel:
    def execute(self, requests):
        return []  # {content}
"""


@dataclass(frozen=True)
class State:
    """The content of the model, the instance type, and whether it has a guard, many models,
    and a switch.
    """

    content: str = "first"
    instance_type: str = "ml.c5.xlarge"
    has_guard: bool = False
    has_many: bool = False
    has_switch: bool = True


STATES = {
    "first": State(),
    "plain": State(has_switch=False),
    "second": State("second"),
    "guarded": State(has_guard=True),
    "guarded_larger": State(instance_type="ml.c5.2xlarge", has_guard=True),
    "many": State(has_many=True),
    "many_second": State("second", has_many=True),
}


class SwitchedStack(cdk.Stack):
    """A scaled endpoint whose updates are verified, off at night."""

    def __init__(self, scope: Construct, id: str, *, models: Path, state: State) -> None:
        super().__init__(scope, id)
        night = None
        if state.has_switch:
            night = OffSwitch(self, "Night")
            night.add_schedule(
                "Daily",
                off=scheduler.ScheduleExpression.cron(hour="20", minute="0"),
                on=scheduler.ScheduleExpression.cron(hour="7", minute="0"),
            )
        served = TritonMultiModelEndpoint if state.has_many else TritonEndpoint
        endpoint = served(
            self,
            "Echo",
            model_repository=TritonModelRepository(
                self, "Models", source=ModelSource.from_directory(models)
            ),
            instance_type=InstanceType.of(state.instance_type),
            endpoint_name=ENDPOINT,
            off_switch=night,
            scaling_guard=state.has_guard,
            verify_update=True,
        )
        count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=4)
        count.scale_on_invocations_per_instance("Load", max_requests_per_second=10)
        endpoint.add_alarms(no_invocations_for=cdk.Duration.hours(2))
        endpoint.export_outputs(export_name_prefix="switched")


def synthesize_states(directory: Path) -> Path:
    """Write the assembly of each state to a folder of its name, and one with ``_off``,
    which is off.
    """
    for name, state in STATES.items():
        models = directory / "models" / name
        (models / "echo" / "1").mkdir(parents=True)
        (models / "echo" / "config.pbtxt").write_text(_CONFIG)
        (models / "echo" / "1" / "model.py").write_text(_MODEL.format(content=state.content))
        app = cdk.App(outdir=str(directory / name), builtin_cloud_formation_validation=False)
        SwitchedStack(app, STACK, models=models, state=state)
        app.synth()
        if not state.has_switch:
            continue
        shutil.copytree(directory / name, directory / f"{name}_off")
        path = directory / f"{name}_off" / f"{STACK}.template.json"
        template = json.loads(path.read_text())
        template["Parameters"][PARAMETER]["Default"] = "false"
        path.write_text(json.dumps(template))
    return directory
