"""The published systems with the frameworks of the articles, on this machine's CPU.

PyTorch, transformers and DALI are in environments of their own. The scripts run in a copy of the
examples, as the READMEs say.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import boto3
import numpy as np
import pytest
from article_calls import article_invocations
from environments import environment
from example_scripts import PUBLISHED_SYSTEMS, run_script, synthesize
from local_processes import command_lines_with, folders
from parts import daily
from t5_reference import T5Reference
from tokenizers import Tokenizer
from triton_server import needs_server

from cdk_rehearse import SimulatedAccount
from constructs_triton.cli import main as constructs_triton
from constructs_triton_client import TritonClient
from constructs_triton_tools.local import LocalEndpoint

BUDGET_MINUTES = 7
pytestmark = needs_server

PYTORCH_PACKAGES = [
    "numpy<2",
    "torch==2.13.0",
    "transformers>=5,<6",
    "onnx",
    "onnxruntime",
    "venv-pack",
]
DALI_PACKAGES = ["numpy<2", "nvidia-dali-cuda120", "onnxruntime"]
WRITTEN = shutil.ignore_patterns("build", "cdk.out", "model_files", "models", "stand_ins", "*.dali")
# Prints the number of devices that tracing has written into a model.
DEVICES = """
import sys, torch
graph = torch.jit.load(sys.argv[1]).inlined_graph
print(
    sum(
        node.output().type().kind() == "DeviceObjType"
        for node in graph.findAllNodes("prim::Constant")
    )
)
"""
SENTENCES = ["translate English to German: The house is wonderful.", "It is small."]


@pytest.fixture(scope="module")
def systems(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the examples."""
    copy = tmp_path_factory.mktemp("examples") / "published_systems"
    shutil.copytree(PUBLISHED_SYSTEMS, copy, ignore=WRITTEN)
    return copy


@pytest.fixture(scope="module")
def pytorch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment("transformers", PYTORCH_PACKAGES, tmp_path_factory.getbasetemp())


@pytest.fixture(scope="module")
def dali(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment("dali_onnx", DALI_PACKAGES, tmp_path_factory.getbasetemp())


def run(python: Path, folder: Path, *words: object) -> str:
    """Run a script of an example in an environment; return what it prints."""
    command = [str(python), *map(str, words)]
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout


@daily
def test_bert_in_pytorch_and_in_the_place_of_tensorrt(
    systems: Path, pytorch: Path, tmp_path: Path
) -> None:
    """Both configurations of the article give the same probabilities; the trace names no device."""
    example = systems / "bert_benchmark"
    run(pytorch, example, "make_model_files.py", "--random")
    assert run(pytorch, example, "-c", DEVICES, "model_files/model.pt").strip() == "0"
    options: dict[str, dict[str, Any]] = {
        "pt-ig-db": {"python": pytorch},
        "trt-ig-db": {"stand_ins": {"bert": example / "model_files" / "model.onnx"}},
    }
    printed = []
    for name, option in options.items():
        context = {"configuration": name, "instance_type": "ml.g4dn.xlarge"}
        assembly = synthesize(
            "bert_benchmark", tmp_path / name / "cdk.out", systems=systems, **context
        )
        with LocalEndpoint.from_assembly(assembly, endpoint=f"bert-{name}", **option) as local:
            words = [f"bert-{name}", "--endpoint-url", local.endpoint_url]
            printed.append(run_script("bert_benchmark", "invoke.py", *words, systems=systems))
    assert printed[0] == printed[1]
    assert printed[0].startswith("no: 0.")


@daily
def test_load_test_and_table_of_bert(
    systems: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``measure.py`` and `plan` give a table and a choice for a measured configuration."""
    table = tmp_path / "local.csv"
    words = ["trt-db", "--step-seconds", "1", "-o", table]
    run_script("bert_benchmark", "measure.py", *words, systems=systems)
    limits = ["--requests-per-second", "500", "--latency-ms", "500", "--price", "local=1", "--json"]
    assert constructs_triton(["plan", str(table), *limits]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["cheapest"]["configuration"] == "trt-db"


@daily
def test_resnet_50_as_torchscript_and_in_the_place_of_the_plan(
    systems: Path, pytorch: Path, tmp_path: Path
) -> None:
    """The article's two values of ``TargetModel`` return the same scores, in JSON and in binary."""
    example = systems / "resnet_autoscaling"
    run(pytorch, example, "make_model_files.py", "--random")
    assembly = synthesize("resnet_autoscaling", tmp_path / "cdk.out", systems=systems)
    stand_ins = {"resnet_trt_v0.tar.gz/resnet": example / "model_files" / "model.onnx"}
    with LocalEndpoint.from_assembly(
        assembly, endpoint="resnet-mme-gpu", python=pytorch, stand_ins=stand_ins
    ) as local:
        words = ["resnet-mme-gpu", "--endpoint-url", local.endpoint_url]
        lines = run_script("resnet_autoscaling", "invoke.py", *words, systems=systems).splitlines()
        assert "backend pytorch is replaced by torch" in local.messages
    assert len(lines) == 4
    assert len({line.partition("classes")[2] for line in lines}) == 1


def test_t5_in_pytorch_in_a_packed_environment(
    systems: Path, pytorch: Path, tmp_path: Path
) -> None:
    """Two instances on a multi-model endpoint return the tokens of the
    independent implementation.
    """
    example = systems / "t5_python_backend"
    script = ["sh", "create_hf_env_from_venv.sh"]
    variables = {**os.environ, "ENVIRONMENT": str(pytorch.parents[1])}
    subprocess.run(script, cwd=example, check=True, env=variables)
    options = [
        "--environment",
        "hf_env.tar.gz",
        "--instance-count",
        "2",
        "--output",
        tmp_path / "torch",
    ]
    run_script(
        "t5_python_backend", "build_models.py", "--framework", "pytorch", *options, systems=systems
    )
    run_script(
        "t5_python_backend", "build_models.py", "--output", tmp_path / "numpy", systems=systems
    )
    tokenizer = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    tokenizer.enable_padding(pad_id=0)
    (invocation,) = article_invocations(PUBLISHED_SYSTEMS / "t5_python_backend")
    with LocalEndpoint.from_repository(
        tmp_path / "torch", is_multi_model=True, endpoint="t5"
    ) as local:
        runtime: Any = boto3.client("sagemaker-runtime", endpoint_url=local.endpoint_url)
        payload = json.dumps({"inputs": _tensors(tokenizer)})
        answer = _invoke(runtime, EndpointName="t5", Body=payload, **invocation)
        (output,) = json.loads(answer["Body"].read())["outputs"]
        (folder,) = folders(local)
        stubs = [
            line for line in command_lines_with(str(folder)) if "/t5_pytorch/1/model.py" in line
        ]
    tokens = np.array(output["data"]).reshape(len(SENTENCES), -1).tolist()
    tokenizer.no_padding()
    reference = T5Reference(tmp_path / "numpy" / "t5_relu" / "1")
    expected = [reference.generate(tokenizer.encode(sentence).ids, 16) for sentence in SENTENCES]
    longest = max(map(len, expected))
    assert tokens == [row + [0] * (longest - len(row)) for row in expected]
    assert len(stubs) == 2


def _invoke(runtime: Any, **parameters: str) -> Any:
    """Invoke until the model is loaded: unpacking its environment may take
    longer than one request.
    """
    for _ in range(5):
        with suppress(runtime.exceptions.ModelNotReadyException):
            return runtime.invoke_endpoint(**parameters)
    raise AssertionError("the model is not ready after five requests")


def _tensors(tokenizer: Tokenizer) -> list[dict[str, Any]]:
    """The article's ``get_text_payload``: token ids and mask as JSON."""
    encodings = tokenizer.encode_batch(SENTENCES)
    rows = {
        "input_ids": [each.ids for each in encodings],
        "attention_mask": [each.attention_mask for each in encodings],
    }
    return [
        {"name": name, "shape": list(np.shape(data)), "datatype": "INT32", "data": data}
        for name, data in rows.items()
    ]


def test_dali_decodes_for_the_articles_ensemble(systems: Path, dali: Path, tmp_path: Path) -> None:
    """The article's three configurations with DALI on the CPU name the picture,
    in all three requests.
    """
    example = systems / "dali_inception"
    run(dali, example, "make_dali.py", "--device", "cpu")
    network = example / "model_files" / "inception.onnx"
    run_script("small_network", "network_as_onnx.py", "inception", network, systems=systems)
    assembly = synthesize("dali_inception", tmp_path / "cdk.out", systems=systems)
    labels = tmp_path / "build" / "twin" / "inception_graphdef" / "inception_labels.txt"
    with LocalEndpoint.from_assembly(
        assembly, endpoint="dali-inception", python=dali, stand_ins={"inception_graphdef": network}
    ) as local:
        words = ["dali-inception", "--endpoint-url", local.endpoint_url, "--labels", labels]
        lines = run_script("dali_inception", "invoke.py", *words, systems=systems).splitlines()
        assert "dali: backend dali is replaced by nvidia.dali" in local.messages
    assert len(lines) == 3
    assert all("blue, row 3, column 8" in line for line in lines)


def test_pipeline_of_the_two_ensembles(systems: Path, dali: Path, tmp_path: Path) -> None:
    """The article's pipeline gives Inception's input,
    and the stack of both ensembles can be deployed.
    """
    run(dali, systems / "minilm_ensembles", "make_dali.py", "--device", "cpu")
    outputs = ["--output", tmp_path / "models", "--stand-ins", tmp_path / "stand_ins"]
    run_script("minilm_ensembles", "build_models.py", *outputs, systems=systems)
    picture = np.fromfile(systems / "dali_inception" / "picture.jpg", dtype=np.uint8)[np.newaxis]
    stand_ins = {"inception_graphdef": tmp_path / "stand_ins" / "inception_graphdef.onnx"}
    context = {"models": str(tmp_path / "models")}
    assembly = synthesize("minilm_ensembles", tmp_path / "cdk.out", systems=systems, **context)
    with SimulatedAccount() as aws:
        aws.bootstrap()
        deployed = aws.deploy(assembly, "MinilmEnsembles")
        assert deployed.status == "CREATE_COMPLETE", deployed.reason
    with LocalEndpoint.from_assembly(assembly, python=dali, stand_ins=stand_ins) as local:
        client = TritonClient.for_endpoint(
            "minilm-ensembles", endpoint_url=local.endpoint_url, target_model="model_tf_dali.tar.gz"
        )
        scores = client.infer({"INPUT": np.repeat(picture, 3, axis=0)})["OUTPUT"]
    assert scores.argmax(axis=1).tolist() == [528] * 3


def test_tokenizer_in_a_packed_environment(systems: Path, dali: Path, tmp_path: Path) -> None:
    """The environment of the script has the tokenizer, which the models' Python lacks."""
    example = systems / "minilm_ensembles"
    variables = {**os.environ, "VENV_PYTHON": sys.executable}
    subprocess.run(["sh", "pack_environment.sh"], cwd=example, check=True, env=variables)
    options = ["--environment", "processing_env.tar.gz", "--encoder", "onnxruntime"]
    outputs = ["--output", tmp_path / "models", "--stand-ins", tmp_path / "stand_ins"]
    run_script("minilm_ensembles", "build_models.py", *options, *outputs, systems=systems)
    models = tmp_path / "models" / "model_trt_python"
    with LocalEndpoint.from_repository(
        models, endpoint="sentences", model="ensemble", python=dali
    ) as local:
        client = TritonClient.for_endpoint("sentences", endpoint_url=local.endpoint_url)
        texts = np.array([["A man is playing a guitar."], ["A man is eating."]], dtype=object)
        first, second = client.infer({"INPUT0": texts})["embedding"]
    assert abs(first @ second - 0.252) < 0.001
