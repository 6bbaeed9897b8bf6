"""Secrets in the environment of a container: warned about, referred to, or refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_secretsmanager as secretsmanager
from cdk_apps import GPU, add_endpoint, add_many, make_stack, warnings, write_repository

from constructs_triton import (
    ContainerInferenceComponent,
    ModelSource,
    ServingImage,
    TritonComponentEndpoint,
    TritonEnvironment,
    TritonInferenceComponent,
    TritonModel,
    TritonModelRepository,
)
from constructs_triton.testing import assert_no_replacement
from constructs_triton_core.errors import InvalidValueError

TOKEN = "hf_" + "abcdefghijklmnopqrstuvwxyz"
Value = str | cdk.SecretValue


def of_model(stack: cdk.Stack, path: Path, environment: Any) -> None:
    source = ModelSource.from_directory(path)
    repository = TritonModelRepository(stack, "Models", source=source)
    TritonModel(
        stack,
        "Model",
        model_repository=repository,
        model="scale",
        instance_type=GPU,
        environment=environment,
    )


def add_hosts(stack: cdk.Stack) -> TritonComponentEndpoint:
    return TritonComponentEndpoint(
        stack, "Hosts", instance_type=GPU, min_instance_count=1, max_instance_count=2
    )


def of_component(stack: cdk.Stack, path: Path, environment: Any) -> None:
    hosts = TritonComponentEndpoint(
        stack, "Hosts", instance_type=GPU, min_instance_count=1, max_instance_count=2
    )
    source = ModelSource.from_directory(path)
    repository = TritonModelRepository(stack, "Models", source=source)
    TritonInferenceComponent(
        stack,
        "Scale",
        endpoint=hosts,
        model_repository=repository,
        model="scale",
        min_memory=cdk.Size.gibibytes(4),
        number_of_accelerator_devices=1,
        environment=environment,
    )


def of_container(stack: cdk.Stack, path: Path, environment: Any) -> None:
    hosts = TritonComponentEndpoint(
        stack, "Hosts", instance_type=GPU, min_instance_count=1, max_instance_count=2
    )
    ContainerInferenceComponent(
        stack,
        "Other",
        endpoint=hosts,
        image=ServingImage.from_registry("example.com/serving:1", cuda_version="13.0"),
        min_memory=cdk.Size.gibibytes(4),
        number_of_accelerator_devices=1,
        environment=environment,
    )


#: How each construct with ``environment`` is created.
CONSTRUCTS: dict[str, Callable[[cdk.Stack, Path, Any], object]] = {
    "endpoint": lambda stack, path, given: add_endpoint(stack, path, environment=given),
    "multi-model": lambda stack, path, given: add_many(stack, path, environment=given),
    "typed": lambda stack, path, given: add_endpoint(
        stack, path, environment=TritonEnvironment(extra=given)
    ),
    "model": of_model,
    "component": of_component,
    "container": of_container,
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_repository(tmp_path)


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_a_value_that_looks_like_a_secret_is_a_warning(name: str, path: Path) -> None:
    """Each construct warns about a secret in plain text, with the way out and without its value."""
    stack = make_stack()
    CONSTRUCTS[name](stack, path, {"HF_TOKEN": TOKEN})
    found = [each for each in warnings(stack) if "looks like a secret" in each]
    assert len(found) == 1
    assert "SecretValue.secrets_manager" in found[0]
    assert "models copy" in found[0]
    assert TOKEN not in found[0]


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_a_secret_reaches_the_container_as_a_reference(name: str, path: Path) -> None:
    """The template has a dynamic reference, and no warning, for a secret by name and of an app."""
    stack = make_stack()
    secret = secretsmanager.Secret(stack, "Secret")
    given = {
        "HF_TOKEN": cdk.SecretValue.secrets_manager("hub", json_field="token", version_id="v1"),
        "API_KEY": secret.secret_value,
    }
    CONSTRUCTS[name](stack, path, given)
    text = json.dumps(cdk.assertions.Template.from_stack(stack).to_json())
    assert '"HF_TOKEN": "{{resolve:secretsmanager:hub:SecretString:token::v1}}"' in text
    assert '"API_KEY": {"Fn::Join": ["", ["{{resolve:secretsmanager:", {"Ref": "Secret' in text
    assert [each for each in warnings(stack) if "secret" in each] == []


def test_a_new_version_of_a_secret_replaces_the_model(path: Path) -> None:
    """A rotated secret needs a new ``version_id``: without a change the template is the same."""

    def version(version_id: str) -> cdk.Stack:
        stack = make_stack()
        secret = cdk.SecretValue.secrets_manager("hub", version_id=version_id)
        add_endpoint(stack, path, environment={"HF_TOKEN": secret})
        return stack

    assert_no_replacement(version("v1"), version("v1"), allowed=())
    with pytest.raises(AssertionError, match="hub:SecretString:::v2"):
        assert_no_replacement(version("v1"), version("v2"), allowed=())


@pytest.mark.parametrize("name", CONSTRUCTS)
@pytest.mark.parametrize("is_unwrapped", [True, False])
def test_what_cannot_reach_the_container_is_refused(
    name: str, is_unwrapped: bool, path: Path
) -> None:
    """``ssm_secure``, which SageMaker's resources do not support, and plain text are errors."""
    secure = cdk.SecretValue.ssm_secure("/hub/token", "1")
    given = {"HF_TOKEN": secure.unsafe_unwrap() if is_unwrapped else secure}
    with pytest.raises(InvalidValueError, match="store the value in Secrets Manager"):
        CONSTRUCTS[name](make_stack(), path, given)
    plain = cdk.SecretValue.unsafe_plain_text("word")
    with pytest.raises(InvalidValueError, match="must not be a secret in plain text"):
        CONSTRUCTS[name](make_stack(), path, {"HF_TOKEN": plain})


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("MAX_TOKENS", "2048"),
        ("PAD_TOKEN", "</s>"),
        ("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1"),
        ("SECRET_NAME", "prod/hub"),
        ("SECRET", "arn:aws:secretsmanager:us-east-1:123456789012:secret:hub"),
        ("TOKEN", "{{resolve:secretsmanager:hub}}"),
        ("CACHE_KEY", "prefix"),
        ("MODEL_REVISION", "9f86d081884c7d659a2feaa0c55ad0159f86d081"),
        ("TOKENIZER", "bert-base-uncased"),
    ],
)
def test_other_values_are_no_secrets(variable: str, value: str, path: Path) -> None:
    """A number, a place, a special token, a revision and a setting are no secrets."""
    stack = make_stack()
    add_endpoint(stack, path, environment={variable: value})
    assert [each for each in warnings(stack) if "looks like a secret" in each] == []
