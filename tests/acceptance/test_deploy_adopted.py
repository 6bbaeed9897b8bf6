"""``adopt_existing``: a stack takes over an endpoint that boto3 calls made,
and never deletes it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest
from adopted_app import (
    DESIRED,
    MAXIMUM,
    STACK,
    TAGS,
    Deploy,
    Notebook,
    assemblies,
    deploy,
    notebook,
)

from cdk_rehearse import Behaviour, SimulatedAccount
from cdk_rehearse.steps import Step
from constructs_triton_core.cloud_assembly.template import Template
from constructs_triton_functions.adoption import ADOPTED_TYPE
from constructs_triton_functions.scaling_guard import POLICY_TYPE, TARGET_TYPE

BUDGET_MINUTES = 3
__all__ = ["assemblies", "deploy", "notebook"]  # fixtures


def fail_after(notebook: Notebook, assembly: Path, type: str) -> None:
    """Let the only resource of a type fail after its service has carried out the change."""
    (name,) = Template.read(assembly / f"{STACK}.template.json").resources_of_type(type)
    notebook.aws.behaviour = replace(notebook.aws.behaviour, failing={name: "after"})


# Adoption.


def test_adoption_keeps_the_endpoint_and_its_fleet(notebook: Notebook, deploy: Deploy) -> None:
    """Name, ARN, tags and instance count stay; the model is that of the stack,
    and the old one is kept.
    """
    before = notebook.described()
    assert deploy("first").status == "CREATE_COMPLETE"
    after = notebook.described()
    assert (after["EndpointArn"], after["CreationTime"]) == (
        before["EndpointArn"],
        before["CreationTime"],
    )
    assert notebook.running.startswith("Adopting")
    assert (notebook.count, notebook.tags) == (DESIRED, TAGS)
    assert notebook.sagemaker.describe_endpoint_config(EndpointConfigName=notebook.config)
    assert notebook.sagemaker.describe_model(ModelName=f"{notebook.name}-model")


def test_scaling_is_taken_over_without_a_gap(
    aws: SimulatedAccount, notebook: Notebook, deploy: Deploy
) -> None:
    """After each step the variant has a policy, and in the end only that of the stack."""
    seen: list[list[str]] = []
    inspect = aws.deployer.inspect

    def look(step: Step) -> None:
        inspect(step)
        seen.append(notebook.policies)

    with mock.patch.object(aws.deployer, "inspect", look):
        assert deploy("first").status == "CREATE_COMPLETE"
    assert all(seen)
    assert notebook.bounds == (2, 5)
    (new,) = notebook.policies
    assert new != "by-hand"
    assert notebook.actions == []


def test_scaling_that_the_stack_does_not_declare_stays(notebook: Notebook, deploy: Deploy) -> None:
    """An endpoint that the stack does not scale keeps the scaling that was set up by hand."""
    assert deploy("unscaled").status == "CREATE_COMPLETE"
    assert (notebook.bounds, notebook.policies) == ((1, MAXIMUM), ["by-hand"])


@pytest.mark.parametrize("state", ["other_type", "unscaled_other_type"])
def test_scaled_variant_gets_another_instance_type(
    notebook: Notebook, deploy: Deploy, state: str
) -> None:
    """SageMaker refuses this while the variant is registered; it is registered again afterwards."""
    stack = deploy(state)
    assert stack.status == "CREATE_COMPLETE", stack.reason
    config = notebook.sagemaker.describe_endpoint_config(EndpointConfigName=notebook.running)
    assert config["ProductionVariants"][0]["InstanceType"] == "ml.c6i.xlarge"
    assert notebook.bounds is not None
    assert notebook.policies


# Failures.


@pytest.mark.parametrize("state", ["destroyed", "other_type"])
@pytest.mark.parametrize("failing", [ADOPTED_TYPE, TARGET_TYPE, POLICY_TYPE])
def test_failed_first_deployment_restores_everything(
    assemblies: Path, notebook: Notebook, deploy: Deploy, state: str, failing: str
) -> None:
    """Configuration, instances, scaling and tags are as before,
    and nothing of the stack remains.
    """
    before = notebook.everything()
    fail_after(notebook, assemblies / state, failing)
    stack = deploy(state)
    assert stack.status == "ROLLBACK_COMPLETE", stack.reason
    assert notebook.everything() == before
    assert stack.resources == {}


@pytest.mark.parametrize("seed", range(3))
def test_unfriendly_account_restores_everything(
    assemblies: Path, notebook: Notebook, deploy: Deploy, seed: int
) -> None:
    """The same with events that arrive twice, late permissions and resources in a random order."""
    before = notebook.everything()
    notebook.aws.behaviour = Behaviour.unfriendly(seed)
    fail_after(notebook, assemblies / "other_type", POLICY_TYPE)
    stack = deploy("other_type")
    assert stack.status == "ROLLBACK_COMPLETE", stack.reason
    assert notebook.everything() == before
    notebook.aws.behaviour = replace(Behaviour.unfriendly(seed), failing={})
    assert deploy("first", f"{stack.name}Again").status == "CREATE_COMPLETE"
    assert notebook.running != before["config"]


def test_update_that_sagemaker_reverts_fails(
    aws: SimulatedAccount, notebook: Notebook, deploy: Deploy
) -> None:
    """SageMaker returns to the old configuration without an error;
    the deployment fails and says so.
    """
    before = notebook.everything()
    aws.behaviour = replace(aws.behaviour, endpoint_update="reverts")
    stack = deploy("first")
    assert stack.status == "ROLLBACK_COMPLETE"
    assert "SageMaker did not keep the update" in stack.reason
    assert notebook.everything() == before


@pytest.mark.parametrize("failing", [ADOPTED_TYPE, TARGET_TYPE])
def test_failed_second_deployment_returns_to_the_first(
    assemblies: Path, notebook: Notebook, deploy: Deploy, failing: str
) -> None:
    """A rollback returns to the configuration of the stack, not to that of the notebook."""
    deploy("first")
    notebook.set_count(4)
    before = notebook.everything()
    fail_after(notebook, assemblies / "other_type", failing)
    stack = deploy("other_type")
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE", stack.reason
    assert notebook.everything() == before


# Later.


def test_second_deployment_replaces_the_stacks_own_model(
    notebook: Notebook, deploy: Deploy
) -> None:
    """The model of the first deployment is deleted, that of the notebook stays,
    and so does the fleet.
    """
    deploy("first")
    first = notebook.running
    notebook.set_count(4)
    assert deploy("second").status == "UPDATE_COMPLETE"
    names = [
        each["EndpointConfigName"]
        for each in notebook.sagemaker.list_endpoint_configs()["EndpointConfigs"]
    ]
    assert notebook.running != first
    assert first not in names
    assert notebook.config in names
    assert notebook.count == 4


def test_deletion_of_the_stack_leaves_the_endpoint(
    aws: SimulatedAccount, notebook: Notebook, deploy: Deploy
) -> None:
    """By default, the endpoint goes on with the stack's model,
    which is retained with all that it needs.
    """
    stack = deploy("first")
    running = notebook.running
    assert aws.destroy(stack.name).status == "DELETE_COMPLETE"
    assert (notebook.running, notebook.count, notebook.tags) == (running, DESIRED, TAGS)
    config = notebook.sagemaker.describe_endpoint_config(EndpointConfigName=running)
    model = config["ProductionVariants"][0]["ModelName"]
    role = notebook.sagemaker.describe_model(ModelName=model)["ExecutionRoleArn"].rpartition("/")[2]
    assert aws.client("iam").get_role(RoleName=role)
    assert aws.client("iam").list_attached_role_policies(RoleName=role)["AttachedPolicies"]


def test_deletion_waits_for_a_previous_model_that_is_gone(
    aws: SimulatedAccount, notebook: Notebook, deploy: Deploy
) -> None:
    """The deletion fails before it deletes anything,
    and succeeds once the endpoint is deleted by hand.
    """
    stack = deploy("destroyed")
    running = notebook.running
    notebook.sagemaker.delete_endpoint_config(EndpointConfigName=notebook.config)
    stack = aws.destroy(stack.name)
    assert stack.status == "DELETE_FAILED"
    assert f"endpoint configuration {notebook.config} no longer exist" in stack.reason
    assert notebook.sagemaker.describe_endpoint_config(EndpointConfigName=running)
    notebook.sagemaker.delete_endpoint(EndpointName=notebook.name)
    assert aws.destroy(stack.name).status == "DELETE_COMPLETE"


def test_endpoint_that_was_changed_by_hand_is_left(
    aws: SimulatedAccount, notebook: Notebook, deploy: Deploy
) -> None:
    """A third configuration, set by hand, is not replaced by the notebook's."""
    stack = deploy("destroyed")
    variants = notebook.sagemaker.describe_endpoint_config(EndpointConfigName=notebook.config)
    third = f"{notebook.name}-third"
    notebook.sagemaker.create_endpoint_config(
        EndpointConfigName=third, ProductionVariants=variants["ProductionVariants"]
    )
    notebook.sagemaker.update_endpoint(EndpointName=notebook.name, EndpointConfigName=third)
    aws.fleets.begin_cleanup()  # the update by hand is complete
    assert aws.destroy(stack.name).status == "DELETE_COMPLETE"
    assert notebook.running == third


def test_construct_moves_to_another_id(notebook: Notebook, deploy: Deploy) -> None:
    """A construct with another id takes the endpoint over from the first one of the same stack."""
    deploy("unscaled")
    first = notebook.running
    stack = deploy("unscaled_other_id")
    assert stack.status == "UPDATE_COMPLETE", stack.reason
    assert notebook.running != first
    assert notebook.count == DESIRED


def test_scaling_cannot_move_to_another_id(notebook: Notebook, deploy: Deploy) -> None:
    """The deletion of the first construct's target would deregister the variant,
    so it is refused.
    """
    deploy("first")
    before = notebook.everything()
    stack = deploy("other_id")
    assert "deploy once without the scaling of this variant" in stack.reason
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
    assert notebook.everything() == before


def test_failed_move_to_another_id_returns(
    assemblies: Path, notebook: Notebook, deploy: Deploy
) -> None:
    """If the new construct fails, the endpoint returns to the configuration
    of the first construct.
    """
    deploy("first")
    first = notebook.running
    fail_after(notebook, assemblies / "other_id", ADOPTED_TYPE)
    stack = deploy("other_id")
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE", stack.reason
    assert notebook.running == first
