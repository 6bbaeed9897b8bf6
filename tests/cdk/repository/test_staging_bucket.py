"""Assets in a bucket of the app under a key, as those of ``AppStagingSynthesizer``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from cdk_apps import add_endpoint, add_ensemble, add_many, synthesize, write_model, write_repository

import constructs_triton as library
from constructs_triton import CompressionType, InstanceType
from constructs_triton_client.recorded_requests import RecordedRequest, RecordedRequests

STAGING = "staging-of-the-app"
G5 = InstanceType.of("ml.g5.xlarge")
RANK = {"peft_type": "LORA", "r": 8, "base_model_name_or_path": "base"}
LORA = {"SM_VLLM_ENABLE_LORA": "true", "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "true"}


def verified(stack: cdk.Stack, path: Path) -> None:
    path.mkdir()
    requests = path / "requests.json"
    RecordedRequests([RecordedRequest("one", {}, {})]).save(requests)
    add_endpoint(stack, write_repository(path / "models"), model="other", verify_responses=requests)


def files(stack: cdk.Stack, path: Path) -> None:
    add_endpoint(stack, path, compression_type=CompressionType.NONE)


def model(stack: cdk.Stack, path: Path) -> None:
    write_model(path, "model")
    library.TritonModel(stack, "Model", model_repository=models(stack, path), instance_type=G5)


def component(stack: cdk.Stack, path: Path) -> None:
    write_model(path, "model")
    library.TritonInferenceComponent(
        stack,
        "Component",
        endpoint=host(stack),
        model_repository=models(stack, path),
        min_memory=cdk.Size.gibibytes(1),
        number_of_accelerator_devices=1,
    )


def adapter(stack: cdk.Stack, path: Path) -> None:
    path.mkdir(exist_ok=True)
    (path / "adapter_config.json").write_text(json.dumps(RANK))
    (path / "adapter_model.safetensors").write_bytes(b"")
    base = library.ContainerInferenceComponent(
        stack,
        "Base",
        endpoint=host(stack),
        image=library.ServingImage.from_registry("x:1", cuda_version="12.8"),
        environment=LORA,
        min_memory=cdk.Size.gibibytes(1),
        number_of_accelerator_devices=1,
    )
    base.add_adapter("German", source=path)


def models(stack: cdk.Stack, path: Path) -> library.TritonModelRepository:
    source = library.ModelSource.from_directory(path)
    return library.TritonModelRepository(stack, "Models", source=source)


def host(stack: cdk.Stack) -> library.TritonComponentEndpoint:
    return library.TritonComponentEndpoint(
        stack, "Host", instance_type=G5, min_instance_count=1, max_instance_count=1
    )


USES: list[Callable[[cdk.Stack, Path], object]] = [
    add_endpoint,
    verified,
    files,
    lambda stack, path: add_ensemble(stack, write_repository(path)),
    lambda stack, path: add_many(stack, write_repository(path)),
    model,
    component,
    adapter,
]


def statements_by_role(template: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The statements of all policies, by the roles that have them."""
    found: dict[str, list[dict[str, Any]]] = {}
    for name, resource in template["Resources"].items():
        properties = resource.get("Properties", {})
        documents = [each["PolicyDocument"] for each in properties.get("Policies", ())]
        documents += [properties["PolicyDocument"]] if "Roles" in properties else []
        for role in properties.get("Roles", [{"Ref": name}]):
            for document in documents:
                found.setdefault(json.dumps(role), []).extend(document["Statement"])
    return found


def has(statement: dict[str, Any], action: str, text: str) -> bool:
    """Whether a statement allows an action on resources with this text."""
    actions = statement["Action"]
    named = actions if isinstance(actions, list) else [actions]
    return action in named and text in json.dumps(statement["Resource"])


@pytest.mark.parametrize(
    "use", USES, ids=lambda each: each.__name__ if each.__name__ != "<lambda>" else ""
)
def test_readers_of_assets_may_use_the_key(
    tmp_path: Path, use: Callable[[cdk.Stack, Path], object]
) -> None:
    """Each role that reads objects of the staging bucket may decrypt them."""
    synthesizer = cdk.DefaultStackSynthesizer(file_assets_bucket_name=STAGING)
    env = cdk.Environment(account="123456789012", region="eu-west-1")
    app = cdk.App()
    key_stack = cdk.Stack(app, "Staging", env=env)
    key = kms.Key.from_key_arn(
        key_stack, "Key", "arn:aws:kms:eu-west-1:123456789012:key/of-the-staging-bucket"
    )
    s3.Bucket(key_stack, "Bucket", bucket_name=STAGING, encryption_key=key)
    stack = cdk.Stack(app, "Test", env=env, synthesizer=synthesizer)
    use(stack, tmp_path / "models")

    readers = []
    for role, statements in statements_by_role(synthesize(stack)).items():
        if any(has(each, "s3:GetObject", STAGING) for each in statements):
            readers.append(role)
            assert any(has(each, "kms:Decrypt", "of-the-staging") for each in statements), role
    assert readers
