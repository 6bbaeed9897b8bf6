"""An endpoint that boto3 calls made: adopted by a stack, updated, found by the commands, and
returned.

``tests/acceptance/test_deploy_adopted.py`` has the failures.
"""

from __future__ import annotations

from pathlib import Path

import boto3
import pytest
from adopted_app import DESIRED, NAME, STACK, TAGS, Notebook, adopt, synthesize

from cdk_rehearse import SimulatedAccount
from constructs_triton_core.cloud_assembly.endpoints import declared_endpoints
from constructs_triton_core.cloud_assembly.synthesized_stack import SynthesizedStack
from constructs_triton_tools.operations.stack_endpoints import endpoints_of_stack

pytestmark = [pytest.mark.e2e]


@pytest.fixture(scope="module")
def assemblies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return synthesize(tmp_path_factory.mktemp("assemblies"), "destroyed", "destroyed_again")


def test_endpoint_is_adopted_updated_and_returned(
    assemblies: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each deployment brings its model, the fleet keeps its size,
    and the deletion restores the old state.
    """
    with SimulatedAccount() as aws:
        aws.bootstrap()
        notebook = Notebook(aws).create().scale()
        before = notebook.everything()
        running = []
        for state in ("destroyed", "destroyed_again"):
            stack = adopt(notebook, assemblies, state)
            assert stack.status in ("CREATE_COMPLETE", "UPDATE_COMPLETE"), stack.reason
            running.append(notebook.running)
            assert notebook.count == DESIRED
            is_first = state == "destroyed"
            assert notebook.tags == (
                TAGS | {"team": "research", "made-by": "cdk"} if is_first else TAGS
            )
        assert len({notebook.config, *running}) == 3
        for name, value in aws.environment().items():
            monkeypatch.setenv(name, value)
        assert endpoints_of_stack(boto3.Session(), stack.name) == [notebook.name]
        assert aws.destroy(stack.name).status == "DELETE_COMPLETE"
        assert notebook.everything() == before


def test_template_declares_the_adopted_endpoint(assemblies: Path) -> None:
    """What runs a template on a laptop finds the endpoint, its variant and its model."""
    stack = SynthesizedStack.read(assemblies / "destroyed" / f"{STACK}.template.json")
    (endpoint,) = declared_endpoints(stack, is_complete=True)
    assert endpoint.name == NAME
    assert [each.name for each in endpoint.variants] == ["AllTraffic"]
    assert len(endpoint.containers) == 1
