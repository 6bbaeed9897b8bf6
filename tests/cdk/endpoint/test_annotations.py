"""A correct app prints no annotations, and a finding that variants share is printed once."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_kms as kms
from cdk_apps import add_endpoint

from constructs_triton import TritonVariant

PROJECT = Path(__file__).resolve().parents[3]


def annotation_texts(root: cdk.Stack | cdk.App) -> list[str]:
    """Return the path and message of all annotations below a construct."""
    return [
        f"{construct.node.path}: {entry.data}"
        for construct in root.node.find_all()
        for entry in construct.node.metadata
        if entry.type in ("aws:cdk:info", "aws:cdk:warning", "aws:cdk:error")
    ]


def test_app_of_the_readme_has_no_annotations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first app of README.md, with a sample repository, has no annotations."""
    shutil.copytree(PROJECT / "assets" / "model_repositories" / "digits", tmp_path / "models")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CDK_OUTDIR", os.fspath(tmp_path / "cdk.out"))
    (code, *_) = re.findall(r"```python\n(.*?)```", (PROJECT / "README.md").read_text(), re.DOTALL)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(code, "README.md", "exec"), names)
    assert annotation_texts(names["app"]) == []


def test_scaled_variants_and_keys_have_no_annotations(stack: cdk.Stack, tmp_path: Path) -> None:
    """Scaled variants, and a key beside local NVMe storage, have no annotations."""
    variants = [TritonVariant(variant_name=name) for name in ("Blue", "Green")]
    endpoint = add_endpoint(
        stack, tmp_path, encryption_key=kms.Key(stack, "Key"), variants=variants
    )
    for variant in endpoint.variants:
        variant.auto_scale_instance_count(min_capacity=1, max_capacity=4).scale_on_gpu_utilization(
            "Gpu"
        )
    assert annotation_texts(stack) == []


def test_finding_of_several_variants_is_annotated_once(stack: cdk.Stack, tmp_path: Path) -> None:
    """A finding that variants share is annotated on the endpoint, another one on its variant."""
    red = TritonVariant(variant_name="Red", environment={"SAGEMAKER_TRITON_MISSPELT": "1"})
    variants = [TritonVariant(variant_name="Blue"), TritonVariant(variant_name="Green"), red]
    add_endpoint(stack, tmp_path, environment={"SAGEMAKER_TRITON_UNKNOWN": "1"}, variants=variants)
    paths = [text.split(": ")[0] for text in annotation_texts(stack)]
    assert sorted(paths) == ["Test/Endpoint", "Test/Endpoint/RedVariant"]
