"""Rehearsals in tests fail for each resource that an endpoint needs, wherever it is, and each
helper refuses what it cannot look at.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import aws_cdk as cdk
import pytest
from aws_cdk import aws_sqs as sqs
from aws_cdk.assertions import Template
from cdk_apps import add_ensemble, make_app, write_repository

from constructs_triton import testing
from constructs_triton.testing import (
    TritonTemplateExtension,
    assert_endpoint,
    assert_no_replacement,
    assert_responses,
    assert_scales,
    assert_update_keeps_serving,
    rehearse,
    stable_template,
)
from constructs_triton_core.errors import InvalidValueError

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("loopback_stack")]

#: Nothing that is served needs them, and they have no data.
NOT_SERVING = (
    "AWS::ApplicationAutoScaling::ScalingPolicy",
    "AWS::CDK::Metadata",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cloud assembly with a queue, and with an endpoint in a nested stack."""
    app = make_app(tmp_path_factory.mktemp("out"))
    stack = cdk.Stack(app, "Shop")
    sqs.Queue(stack, "Orders")
    models = write_repository(tmp_path_factory.mktemp("models"))
    endpoint = add_ensemble(cdk.NestedStack(stack, "Vision"), models, "Pipeline")
    scaled = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=4)
    scaled.scale_on_invocations_per_instance("Load", target_invocations_per_minute=600)
    return Path(app.synth().directory)


def without_each(folder: Path, copies: Path) -> Iterator[tuple[str, Path]]:
    """Yield the type of each resource, and the assembly without it."""
    for file in sorted(folder.glob("*.template.json")):
        for name, resource in json.loads(file.read_text())["Resources"].items():
            copy = copies / name
            shutil.copytree(folder, copy)
            template = json.loads(file.read_text())
            del template["Resources"][name]
            (copy / file.name).write_text(json.dumps(template))
            publish(copy / file.name)
            yield resource["Type"], copy


def publish(file: Path) -> None:
    """Give a changed template of a nested stack another name in S3, as the CDK does."""
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    for manifest in file.parent.glob("*.assets.json"):
        for key, asset in json.loads(manifest.read_text())["files"].items():
            if asset["source"].get("path") != file.name or "nested" not in file.name:
                continue
            for other in file.parent.glob("*.json"):
                other.write_text(other.read_text().replace(key.partition("-")[0], digest))


def test_each_resource_that_an_endpoint_needs_must_stay(folder: Path, tmp_path: Path) -> None:
    """An update without one of the resources that serve or have data fails the assertion, also in
    a nested stack; without another one it passes.
    """
    assert_update_keeps_serving(folder, folder, failures="none", orders=1)
    wrong = []
    number = 0
    for type_, copy in without_each(folder, tmp_path):
        number += 1
        is_needed = type_ not in NOT_SERVING
        try:
            assert_update_keeps_serving(folder, copy, failures="none", orders=1)
            fails = False
        except AssertionError:
            fails = True
        if fails != is_needed:
            wrong.append(type_)
    assert number >= 8
    assert wrong == []


Helper = Callable[[Any], object]
HELPERS: dict[str, Helper] = {
    "TritonTemplateExtension": lambda value: TritonTemplateExtension().serialize({"a": [value]}),
    "assert_endpoint": assert_endpoint,
    "assert_no_replacement": lambda value: assert_no_replacement(value, value),
    "assert_responses": lambda value: assert_responses(cast(Any, value), value),
    "assert_scales": lambda value: assert_scales(value, on="InvocationsPerInstance"),
    "assert_update_keeps_serving": lambda value: assert_update_keeps_serving(value, value),
    "rehearse": lambda value: rehearse(None, value),
    "stable_template": stable_template,
}
"""Each public helper, with a value in place of what it looks at."""


def test_every_public_helper_is_asked() -> None:
    """A new helper is asked too."""
    assert HELPERS.keys() == set(testing.__all__)


@pytest.mark.parametrize("name", HELPERS)
@pytest.mark.parametrize(
    "wrong",
    [3, object(), cdk.Duration.seconds(1), b"Shop"],
    ids=["number", "object", "duration", "bytes"],
)
def test_each_helper_refuses_what_it_cannot_look_at(name: str, wrong: Any) -> None:
    """A value of which nothing could be compared is an error with what to pass, never a green
    test.
    """
    if name == "TritonTemplateExtension" and isinstance(wrong, int | bytes):
        return  # values of JSON and of syrupy
    with pytest.raises(InvalidValueError, match=r"(?s)must be .*; (pass|write)"):
        HELPERS[name](wrong)


@pytest.mark.parametrize("name", sorted(HELPERS.keys() - {"assert_responses"}))
def test_each_helper_looks_at_a_template_or_refuses_it(name: str, folder: Path) -> None:
    """The template object of a stack with a nested one is refused with what to pass, unless both
    versions have the same.
    """
    template = Template.from_json(json.loads((folder / "Shop.template.json").read_text()))
    if name == "assert_no_replacement":
        HELPERS[name](template)
        return
    with pytest.raises(InvalidValueError, match="pass the stack"):
        HELPERS[name](template)
