"""Rehearsals in the tests of users."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_sqs as sqs
from small_assembly import endpoint, write_assembly

from constructs_triton.testing import assert_update_keeps_serving, rehearse

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("loopback_stack")]


def test_assertion_passes_or_names_each_problem_with_its_fix(tmp_path: Path) -> None:
    """New content may be deployed; another endpoint name is an error with its code,
    unless acknowledged.
    """
    old = write_assembly(tmp_path / "old", endpoint())
    content = write_assembly(tmp_path / "content", endpoint(archive="two.tar.gz"))
    assert_update_keeps_serving(old, content, failures="none", orders=1)
    renamed = write_assembly(tmp_path / "renamed", endpoint(name="other"))
    with pytest.raises(
        AssertionError, match=r"found \d errors?\n(.*\n)*  rehearse-endpoint-replaced: .*digits"
    ):
        assert_update_keeps_serving(old, renamed, failures="none", orders=1)
    known = ["rehearse-endpoint-replaced@digits"]
    assert_update_keeps_serving(old, renamed, failures="none", orders=1, acknowledge=known)


def test_stack_or_app_is_synthesized() -> None:
    """Of an app, a stack is rehearsed alone; an app has all its stacks."""
    app = cdk.App(builtin_cloud_formation_validation=False)
    shop = cdk.Stack(app, "Shop")
    sqs.Queue(shop, "Jobs")
    sqs.Queue(cdk.Stack(app, "Other"), "Jobs")
    assert {step.stack for step in rehearse(None, shop, failures="none", orders=1).steps} == {
        "Shop"
    }
    both = rehearse(None, app, failures="none", orders=1)
    assert {step.stack for step in both.steps} == {"Shop", "Other"}
    assert any(each.startswith("AWS::SQS::Queue Jobs") for each in both.not_simulated)
