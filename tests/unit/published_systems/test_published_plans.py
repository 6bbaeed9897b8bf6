"""The plans of the published systems: requests for their models,
and the scripts for your own GPU.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws
from onnx import TensorProto
from published_examples import EXAMPLES
from simulated_jobs import ROLE, write_onnx

from cdk_rehearse.services.request_shapes import conform
from constructs_triton.cli import main

SCRIPTS = sorted(EXAMPLES.glob("*/compile_tensorrt.sh"))


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Imports a module of an example; those of two examples have the same names."""

    def load(example: str, module: str) -> Any:
        monkeypatch.syspath_prepend(str(EXAMPLES / example))
        return importlib.import_module(module)

    yield load
    for name in ("variants", "repositories"):
        sys.modules.pop(name, None)


def bert(load: Any, folder: Path) -> tuple[Path, str]:
    inputs = {f"INPUT__{index}": ["batch", 512] for index in range(2)}
    model = write_onnx(folder / "model.onnx", inputs=inputs, data_type=TensorProto.INT32)
    return model, load("bert_benchmark", "variants").VARIANTS["trt-ig-db"].to_text()


def resnet(load: Any, folder: Path) -> tuple[Path, str]:
    model = write_onnx(
        folder / "model.onnx", inputs={"input": ["batch", 3, 224, 224]}, output=("output", 1000)
    )
    return model, load("resnet_autoscaling", "repositories").TENSORRT.to_text()


@pytest.mark.parametrize(
    "system",
    [
        (bert, "--maxShapes=INPUT__0:16x512,INPUT__1:16x512"),
        (resnet, "--maxShapes=input:128x3x224x224"),
    ],
)
@pytest.mark.parametrize("instance_type", ["ml.g4dn.xlarge", "ml.p4d.24xlarge"])
def test_requests_are_accepted(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    modules: Any,
    system: tuple[Any, str],
    instance_type: str,
) -> None:
    """botocore's shapes and moto accept the jobs for BERT and ResNet of the examples."""
    write_system, shapes = system
    model, config = write_system(modules, tmp_path)
    (tmp_path / "config.pbtxt").write_text(config)
    words = [
        str(model),
        "--config",
        str(tmp_path / "config.pbtxt"),
        "--instance-type",
        instance_type,
    ]
    assert (
        main(["compile", *words, "--precision", "fp16", "--role", ROLE, "--dry-run", "--json"]) == 0
    )
    (job,) = json.loads(capsys.readouterr().out)["jobs"]
    assert {shapes, "--fp16"} < set(job["trtexec_arguments"])
    assert conform("sagemaker", job["operation"], job["request"])[1] == []
    kind = "Processing" if job["operation"] == "CreateProcessingJob" else "Training"
    with mock_aws():
        client: Any = boto3.client("sagemaker")
        getattr(client, f"create_{kind.lower()}_job")(**job["request"])
        name = {f"{kind}JobName": job["request"][f"{kind}JobName"]}
        assert getattr(client, f"describe_{kind.lower()}_job")(**name)["RoleArn"] == ROLE


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.parent.name)
@pytest.mark.parametrize("has_option", [True, False], ids=["10", "11"])
def test_scripts_refuse_a_trtexec_without_half_precision(
    script: Path, tmp_path: Path, has_option: bool
) -> None:
    """With TensorRT 11 a script ends with the reason, and builds no plan in single precision."""
    copy = tmp_path / script.parent.name / script.name
    (copy.parent / "model_files").mkdir(parents=True)
    copy.write_text(script.read_text())
    (copy.parent / "build_models.py").write_text(
        "import sys, pathlib; pathlib.Path(sys.argv[-1]).touch()"
    )
    calls = tmp_path / "calls"
    docker = tmp_path / "bin" / "docker"
    docker.parent.mkdir()
    help_text = "  --fp16  Enable fp16 precision" if has_option else "  --stronglyTyped"
    docker.write_text(
        f'#!/bin/sh\nfor last; do :; done\nif [ "$last" = --help ]; then\n    echo "{help_text}"\n'
        f'else\n    echo "$@" > "{calls}"\n    for each; do case "$each" in *:/workspace) touch '
        '"${each%:*}/model.plan" ;; esac; done\nfi\n'
    )
    docker.chmod(0o755)
    path = f"{docker.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", copy], env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    assert (done.returncode == 0) is has_option, done.stderr
    assert calls.exists() is has_option
    assert ("have no --fp16: convert model.onnx to half precision" in done.stderr) is not has_option
