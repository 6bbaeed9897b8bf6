"""Both examples with instance pools on a loopback AWS: created, updated, rolled back and destroyed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from deploy_twice import inventory, synthesize_apps

from cdk_rehearse import SimulatedAccount
from constructs_triton_core.cloud_assembly.assembly import Assembly

BUDGET_MINUTES = 2
pytestmark = [pytest.mark.usefixtures("budget")]

EXAMPLES = {"async_pools": "UPDATE_ROLLBACK_COMPLETE", "instance_pools": "UPDATE_COMPLETE"}
_OTHER = {"g5": "g6", "g6": "g5"}


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The assemblies of both examples, before and after a change of every model."""
    folder = tmp_path_factory.mktemp("pools")
    before = synthesize_apps(folder / "before", list(EXAMPLES))
    return before, synthesize_apps(folder / "after", list(EXAMPLES), changes_models=True)


def running(aws: SimulatedAccount) -> dict[str, Any]:
    """The only variant of the only endpoint, as its configuration declares it."""
    sagemaker = aws.client("sagemaker")
    (endpoint,) = sagemaker.list_endpoints()["Endpoints"]
    found = sagemaker.describe_endpoint(EndpointName=endpoint["EndpointName"])
    config = sagemaker.describe_endpoint_config(EndpointConfigName=found["EndpointConfigName"])
    (variant,) = config["ProductionVariants"]
    return dict(variant)


def other_order(assembly: Path, target: Path) -> Path:
    """The same app with two of its types exchanged."""
    shutil.copytree(assembly, target)
    for path in target.glob("*.template.json"):
        text = re.sub(r"\bml\.(g5|g6)\.", lambda found: f"ml.{_OTHER[found[1]]}.", path.read_text())
        path.write_text(text)
    return target


@pytest.mark.parametrize(("name", "status"), EXAMPLES.items())
def test_life_of_an_example_with_pools(
    name: str, status: str, versions: tuple[Path, Path], tmp_path: Path
) -> None:
    """New models keep the pools; another order needs the guard, and is rolled back without it."""
    before, after = (each / name for each in versions)
    (stack,) = Assembly(before).stacks()
    with SimulatedAccount() as aws:
        aws.bootstrap()
        empty = inventory(aws)
        assert aws.deploy(before, stack).status == "CREATE_COMPLETE"
        first = running(aws)
        assert aws.deploy(after, stack).status == "UPDATE_COMPLETE"
        second = running(aws)
        assert second["InstancePools"] == first["InstancePools"]
        assert second["ModelName"] != first["ModelName"]
        assert aws.deploy(other_order(after, tmp_path / name), stack).status == status
        pools = running(aws)["InstancePools"]
        assert (pools == first["InstancePools"]) == (status == "UPDATE_ROLLBACK_COMPLETE")
        destroyed = aws.destroy(stack)
        assert destroyed.status == "DELETE_COMPLETE", destroyed.reason
        assert inventory(aws) == empty
