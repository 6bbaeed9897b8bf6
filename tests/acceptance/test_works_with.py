"""The programs of the pages about embeddings and other tools,
with the real server and the real packages.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3
import numpy as np
import onnx
import pytest
from botocore.validate import ParamValidator
from environments import environment
from example_scripts import run_script
from moto import mock_aws
from onnx import TensorProto, helper
from platformdirs import user_cache_path
from programs import PROJECT, synthesize_app
from sentence_reference import SentenceReference
from template_lint import lint
from triton_server import needs_server

from constructs_triton_client import TritonClient
from constructs_triton_tools.local import LocalEndpoint

BUDGET_MINUTES = 3
pytestmark = needs_server

GUIDES = PROJECT / "docs" / "guides"
WEIGHTS = user_cache_path("constructs-triton") / "examples" / "all-MiniLM-L6-v2"
CLIENT = [str(PROJECT / "packages" / "core"), f"{PROJECT / 'packages' / 'client'}[aws]"]
LANGUAGE_MODEL_PACKAGES = [
    "langchain-aws==1.9.1",
    "langchain-community==0.4.2",
    "llama-index-core==0.14.25",
    "llama-index-embeddings-sagemaker-endpoint==0.6.0",
]
MLFLOW_PACKAGES = [
    "mlflow-skinny==3.17.2",
    "alembic",
    "sqlalchemy",
    "onnx",
    "onnxruntime",
    "pandas",
]
AIRFLOW_PACKAGES = ["apache-airflow==3.3.2", "apache-airflow-providers-amazon==9.39.0"]
JAVASCRIPT_PACKAGE = "@aws-sdk/client-sagemaker-runtime@3.1164.0"
QUESTION = "How do I reset my password?"
TENSOR = {"name": "text", "datatype": "BYTES", "shape": [1, 1], "data": [QUESTION]}
#: The texts of the programs, with their similarities to the question.
NEAREST_FIRST = ["0.574 I cannot log in to my account.", "0.172 How do I cook my rice?"]
STORY = [" there", " was", " a", " s", "mall", " light", "hou", "se", " a", "t", " the", " e"]
#: How Step Functions calls an API of AWS, in moto.
CLIENT_OF_TASKS = (
    "moto.stepfunctions.parser.asl.component.state.exec.state_task.service."
    "state_task_service_aws_sdk.boto_client_for"
)


def run(command: list[object], folder: Path, url: str = "", **variables: str) -> str:
    """Run a command as the pages say, with the local run at ``url``; return what it prints."""
    given = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    page = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), given["PATH"]]),
        "AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME": url,
        "AWS_REGION": "us-east-1",
        "NODE_NO_WARNINGS": "1",
    }
    words, environment = [str(word) for word in command], {**given, **page, **variables}
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def write_exported(folder: Path) -> None:
    """Write the files that ``optimum-cli export onnx`` writes, with its names and types,
    without PyTorch.
    """
    folder.mkdir()
    run_script("minilm_ensembles", "build_models.py", "--onnx", folder / "model.onnx")
    shutil.copy(WEIGHTS / "tokenizer.json", folder)
    model = onnx.load(str(folder / "model.onnx"))
    names = [each.name for each in model.graph.input]
    cast = [
        helper.make_node("Cast", [name], [f"{name}_32"], to=TensorProto.INT32) for name in names
    ]
    for node in model.graph.node:
        node.input[:] = [f"{name}_32" if name in names else name for name in node.input]
        node.output[:] = [
            name.replace("token_embeddings", "last_hidden_state") for name in node.output
        ]
    nodes = [*cast, *model.graph.node]
    axes = ["batch_size", "sequence_length"]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, axes)
        for name in [*names, "token_type_ids"]
    ]
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [*axes, 384])
    graph = helper.make_graph(nodes, "exported", inputs, [output], model.graph.initializer)
    versions = {"opset_imports": model.opset_import, "ir_version": model.ir_version}
    onnx.save(helper.make_model(graph, **versions), str(folder / "model.onnx"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a reader who has run the commands of the page about embeddings."""
    folder = tmp_path_factory.mktemp("works_with")
    write_exported(folder / "exported")
    shutil.copytree(GUIDES / "embeddings", folder, dirs_exist_ok=True)
    run(["bash", "-e", "build.sh"], folder)
    assert "0 errors, 0 warnings" in run(["bash", "-e", "environment.sh"], folder)
    return folder


@pytest.fixture(scope="module")
def template(folder: Path) -> Mapping[str, Any]:
    """The template of the app of both pages; each is synthesized."""
    synthesize_app(folder / "app.py", folder / "only.out", is_validated=False)
    shutil.copytree(GUIDES / "works_with", folder, dirs_exist_ok=True)
    synthesize_app(folder / "app.py", folder / "cdk.out", is_validated=False)
    template: Mapping[str, Any] = json.loads(
        (folder / "cdk.out" / "Search.template.json").read_text()
    )
    return template


@pytest.fixture(scope="module")
def search(folder: Path, template: Mapping[str, Any]) -> Iterator[LocalEndpoint]:
    """The endpoints of texts."""
    with LocalEndpoint.from_assembly(folder / "cdk.out", bucket_folder=folder / "s3") as local:
        yield local


@pytest.fixture(scope="module")
def story(folder: Path) -> Iterator[str]:
    """The URL of a local run with the endpoint that streams."""
    app = PROJECT / "examples" / "generate" / "app.py"
    synthesize_app(app, folder / "story.out", is_validated=False)
    with LocalEndpoint.from_assembly(folder / "story.out", endpoint="story") as local:
        yield local.endpoint_url


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with the packages of language models."""
    packages = [*LANGUAGE_MODEL_PACKAGES, *CLIENT]
    return environment(
        "language_models", packages, tmp_path_factory.mktemp("packages"), with_uv=True
    )


@pytest.fixture(scope="module")
def javascript(folder: Path) -> Path:
    """The folder, with the AWS SDK for JavaScript."""
    command = ["npm", "install", "--silent", "--no-audit", "--no-fund", JAVASCRIPT_PACKAGE]
    if subprocess.run(command, cwd=folder, check=False).returncode:
        pytest.skip(f"npm does not install {JAVASCRIPT_PACKAGE}")
    return folder


def test_embeddings_of_an_exported_model(search: LocalEndpoint, folder: Path) -> None:
    """The ensemble of the page gives texts of different lengths their embeddings, within 1e-4."""
    texts = [QUESTION, "I cannot log in to my account.", "A kitten"]
    client = TritonClient.for_endpoint("embeddings", endpoint_url=search.endpoint_url)
    found = client.infer({"text": np.array(texts, object)[:, None]})["embedding"]
    reference = SentenceReference(WEIGHTS)
    np.testing.assert_allclose(
        found, np.stack([reference.embed(text) for text in texts]), atol=1e-4
    )
    printed = run([sys.executable, "ask.py", *texts[:2]], folder, search.endpoint_url)
    assert printed.splitlines() == NEAREST_FIRST[:1]


@pytest.mark.parametrize("program", ["embed_langchain", "embed_langchain_core", "embed_llamaindex"])
def test_nearest_text(program: str, search: LocalEndpoint, folder: Path, python: Path) -> None:
    """The vector stores of LangChain and LlamaIndex find the text that answers the question."""
    printed = run([python, f"{program}.py", QUESTION], folder, search.endpoint_url)
    assert printed.splitlines()[:2] == NEAREST_FIRST


@pytest.mark.parametrize("program", ["ask_langchain", "ask_llamaindex"])
@pytest.mark.usefixtures("template")
def test_text_is_completed(program: str, story: str, folder: Path, python: Path) -> None:
    """LangChain and LlamaIndex return the whole text, and its tokens as they arrive."""
    whole, parts = run([python, f"{program}.py", "Once upon a time"], folder, story).splitlines()
    assert whole == "".join(STORY)
    assert parts == "".join(f"{part}|" for part in STORY)


@pytest.mark.usefixtures("template")
def test_javascript(javascript: Path, search: LocalEndpoint, story: str) -> None:
    """The SDK for JavaScript sends JSON, and reads the events of a stream."""
    printed = run(["node", "invoke.mjs", QUESTION], javascript, search.endpoint_url)
    assert printed.startswith("[ 1, 384 ] [ ")
    streamed = run(["node", "stream.mjs", "Once upon a time"], javascript, story)
    assert streamed == "".join(f"{part}|" for part in STORY) + "\n"


def definition(template: Mapping[str, Any], name: str) -> str:
    """The definition of the state machine whose logical ID begins like this,
    in the Region of the tests.
    """
    (machine,) = [
        each["Properties"]
        for key, each in template["Resources"].items()
        if key.startswith(name) and each["Type"] == "AWS::StepFunctions::StateMachine"
    ]
    known = {"Ref": "aws", "Fn::GetAtt": "embeddings"}
    parts = machine["DefinitionString"]["Fn::Join"][1]
    return "".join(each if isinstance(each, str) else known[next(iter(each))] for each in parts)


class RuntimeOfTasks:
    """Calls the endpoint as a task does, whose result is JSON, so that the body is a string."""

    def __init__(self, url: str) -> None:
        self.client: Any = boto3.client("sagemaker-runtime", endpoint_url=url)

    def invoke_endpoint(self, **parameters: Any) -> dict[str, Any]:
        response = self.client.invoke_endpoint(**parameters)
        return {**response, "Body": response["Body"].read().decode()}


def execute(machine: str, given: object) -> dict[str, Any]:
    """Let moto's interpreter of state machines execute one."""
    role = "arn:aws:iam::123456789012:role/machine"
    with mock_aws(config={"stepfunctions": {"execute_state_machine": True}}):
        machines = boto3.client("stepfunctions")
        arn = machines.create_state_machine(name="m", definition=machine, roleArn=role)[
            "stateMachineArn"
        ]
        started = machines.start_execution(stateMachineArn=arn, input=json.dumps(given))
        while True:
            found: dict[str, Any] = machines.describe_execution(
                executionArn=started["executionArn"]
            )
            if found["status"] != "RUNNING":
                return found
            time.sleep(0.1)


def test_state_machine_calls_the_endpoint(
    template: Mapping[str, Any], search: LocalEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An execution with a request returns the tensor; the response is parsed by the definition."""
    runtime = RuntimeOfTasks(search.endpoint_url)
    monkeypatch.setattr(CLIENT_OF_TASKS, lambda **_: runtime)
    found = execute(definition(template, "Answer"), {"inputs": [TENSOR]})
    assert found["status"] == "SUCCEEDED", found
    assert json.loads(found["output"])["shape"] == [1, 384]


def test_state_machines_are_valid_and_may_do_no_more_than_call(template: Mapping[str, Any]) -> None:
    """cfn-lint accepts template and definitions; each role may call its own
    endpoint and use its files.
    """
    assert lint(template) == []
    actions = {
        key[:6]: [
            statement["Action"] for statement in each["Properties"]["PolicyDocument"]["Statement"]
        ]
        for key, each in template["Resources"].items()
        if each["Type"] == "AWS::IAM::Policy" and key.startswith(("Answer", "Wait"))
    }
    assert actions == {
        "Answer": ["sagemaker:InvokeEndpoint"],
        "Waitfo": [
            "sagemaker:InvokeEndpointAsync",
            ["s3:AbortMultipartUpload", "s3:PutObject"],
            "s3:GetObject",
        ],
    }


REGISTER = """
import onnx, sys, mlflow
with mlflow.start_run():
    model = onnx.load(sys.argv[1])
    logged = mlflow.onnx.log_model(model, name="m", pip_requirements=["onnx"])
for _ in range(2):
    mlflow.register_model(logged.model_uri, "scorer")
mlflow.MlflowClient().set_registered_model_alias("scorer", "champion", "2")
"""


def test_registered_model_of_mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The version with the alias is served with the registry's number,
    which is in each response.
    """
    python = environment("mlflow", MLFLOW_PACKAGES, tmp_path, with_uv=True)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    file = PROJECT / "assets/model_repositories/reviews/scorer/1/model.onnx"
    run([python, "-c", REGISTER, file], tmp_path)
    for name in ("download.py", "deploy.sh"):
        shutil.copy(GUIDES / "works_with" / name, tmp_path)
    both = os.pathsep.join(
        map(str, (python.parent, Path(sys.executable).parent, os.environ["PATH"]))
    )
    assert "0 errors, 0 warnings" in run(["bash", "-e", "deploy.sh"], tmp_path, PATH=both)
    with LocalEndpoint.from_repository(tmp_path / "models", endpoint="scorer") as local:
        client = TritonClient.for_endpoint("scorer", endpoint_url=local.endpoint_url)
        result = client.infer({"features": np.ones((1, 4), np.float32)})
    assert result.model_version == "2"
    assert result["score"].shape == (1, 1)


CONFIG_OF_JOB = """
import json
from airflow.dag_processing.dagbag import DagBag
print(json.dumps(DagBag("dag.py").dags["pictures"].task_dict["transform"].config))
"""


def test_airflow(
    search: LocalEndpoint, folder: Path, template: Mapping[str, Any], tmp_path: Path
) -> None:
    """A run of the DAG queues a request and waits for its response;
    the job of the other is valid.
    """
    python = environment("airflow", AIRFLOW_PACKAGES, tmp_path, with_uv=True)
    variables = {
        "AIRFLOW_HOME": str(tmp_path),
        "AIRFLOW__CORE__DAGS_FOLDER": str(folder),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
        "AWS_ENDPOINT_URL_S3": search.endpoint_url,
    }
    bucket = next(
        key for key, each in template["Resources"].items() if each["Type"] == "AWS::S3::Bucket"
    )
    request = folder / "s3" / bucket / "async" / "input" / "1"
    request.parent.mkdir(parents=True)
    request.write_text(json.dumps({"inputs": [TENSOR]}))
    given = json.dumps({"request": f"s3://{bucket}/async/input/1"})
    airflow = python.with_name("airflow")
    run([airflow, "db", "migrate"], folder, **variables)
    run(
        [airflow, "dags", "test", "embed_later", "--conf", given],
        folder,
        search.endpoint_url,
        **variables,
    )
    (response,) = (folder / "s3" / bucket / "async" / "output").iterdir()
    assert json.loads(response.read_text())["outputs"][0]["shape"] == [1, 384]
    job = json.loads(run([python, "-c", CONFIG_OF_JOB], folder, **variables).splitlines()[-1])
    shape = (
        boto3.client("sagemaker")
        .meta.service_model.operation_model("CreateTransformJob")
        .input_shape
    )
    assert ParamValidator().validate(job, shape).generate_report() == ""
