"""``adopt_existing`` refuses what would harm callers,
and its function has no permission that it can miss.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from adopted_app import DESIRED, STACK, Deploy, Notebook, assemblies, deploy, notebook, template_of
from moto.sagemaker.models import sagemaker_backends

from cdk_rehearse import SimulatedAccount
from constructs_triton_core.cloud_assembly.template import Template

BUDGET_MINUTES = 2
__all__ = ["assemblies", "deploy", "notebook"]  # fixtures


# Refusals.


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("smaller", f"variant AllTraffic has {DESIRED} instances and would have 1"),
        ("other_variant", 'set variant_name="AllTraffic", got Green'),
    ],
)
def test_update_that_would_harm_callers_is_refused(
    notebook: Notebook, deploy: Deploy, state: str, reason: str
) -> None:
    """A smaller fleet and a variant of another name fail the deployment before anything changes."""
    before = notebook.everything()
    stack = deploy(state)
    assert stack.status == "ROLLBACK_COMPLETE"
    assert reason in stack.reason
    assert "Nothing was changed" in stack.reason
    assert notebook.everything() == before


def test_endpoint_whose_model_is_gone_is_refused(
    aws: SimulatedAccount, notebook: Notebook, deploy: Deploy
) -> None:
    """A deployment that could not be rolled back does not begin."""
    # The simulated account refuses to delete a model in use; SageMaker does not.
    sagemaker_backends[aws.api.account][aws.api.region]._models.pop(f"{notebook.name}-model")
    stack = deploy("first")
    assert f"model {notebook.name}-model of the running endpoint no longer exist" in stack.reason
    assert notebook.running == notebook.config


def test_endpoint_of_another_stack_is_refused(
    aws: SimulatedAccount, notebook: Notebook, deploy: Deploy
) -> None:
    """A second stack that adopts the same endpoint fails,
    until the record of the first one is deleted.
    """
    first = deploy("first")
    running = notebook.running
    stack = deploy("second", "Second")
    assert stack.status == "ROLLBACK_COMPLETE"
    assert f"stack {first.id} has adopted this endpoint already" in stack.reason
    assert notebook.running == running
    aws.destroy(first.name)
    aws.client("ssm").delete_parameter(Name=f"/constructs-triton/adopted/{notebook.name}")
    assert deploy("second", "Third").status == "CREATE_COMPLETE"


def test_missing_endpoint_is_refused(notebook: Notebook, deploy: Deploy) -> None:
    """The reason says which keyword is wrong."""
    notebook.sagemaker.delete_endpoint(EndpointName=notebook.name)
    stack = deploy("first")
    assert "correct endpoint_name, or remove adopt_existing to create it" in stack.reason
    assert stack.status == "ROLLBACK_COMPLETE"


# Permissions.


@pytest.mark.parametrize(
    ("sid", "state"),
    [
        ("AdoptEndpoint", "first"),
        ("TagEndpoint", "first"),
        ("LookAtPrevious", "first"),
        ("LookAtScaling", "first"),
        ("RememberEndpoint", "first"),
        ("Deregister", "other_type"),
        ("Register", "other_type"),
        ("ScaleEndpoint", "other_type"),
    ],
)
def test_function_needs_each_permission(
    aws: SimulatedAccount, assemblies: Path, notebook: Notebook, sid: str, state: str
) -> None:
    """Without one statement of the function's policy, AWS refuses a call."""
    body = template_of(notebook, assemblies / state)
    (policy,) = [
        each for name, each in body["Resources"].items() if name.startswith("DigitsAdoptionPolicy")
    ]
    document = policy["Properties"]["PolicyDocument"]
    kept = [each for each in document["Statement"] if each["Sid"] != sid]
    assert len(kept) == len(document["Statement"]) - 1
    document["Statement"] = kept
    name = f"Without{sid}"
    stack = aws.deploy(assemblies / state, STACK, stack_name=name, template=Template(body))
    assert "AccessDenied" in stack.reason
    assert notebook.running == notebook.config
