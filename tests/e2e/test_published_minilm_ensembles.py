"""Two ensembles on one multi-model endpoint, with the real weights of all-MiniLM-L6-v2."""

from __future__ import annotations

import io
import json
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import numpy as np
import pytest
from check_twins.torch_and_plan import plan
from example_scripts import (
    PROJECT,
    PUBLISHED_SYSTEMS,
    Template,
    endpoint_calls,
    parameters_that_differ,
    read_template,
    run_script,
    synthesize,
)
from local_processes import command_lines_with, folders
from numpy.typing import NDArray
from platformdirs import user_cache_path
from sentence_reference import SentenceReference
from syrupy.assertion import SnapshotAssertion
from triton_server import needs_server
from tritonclient import http as http_client

from constructs_triton.client import ModelIndex, TritonClient
from constructs_triton.errors import InvocationError
from constructs_triton.local import LocalEndpoint
from constructs_triton.model_config.target import Target
from constructs_triton.model_repository import ModelRepository
from constructs_triton.testing import TritonTemplateExtension, stable_template

sys.path.insert(0, str(PROJECT / "assets" / "training"))

pytestmark = [pytest.mark.e2e, needs_server, pytest.mark.xdist_group("seed_minilm_ensembles")]

EXAMPLE, STACK, ENDPOINT = "minilm_ensembles", "MinilmEnsembles", "minilm-ensembles"
#: Of the sentence ensemble's 250 MiB and the digits' 100 only what is being asked for may stay.
MEMORY_LIMIT_MIB = 200
SENTENCE_STEPS, DIGITS_STEPS = (
    {"tokenize", "bert", "mean_pooling"},
    {"preprocess", "classifier", "postprocess"},
)

ARTICLE_IMAGE = "785573368785.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:23.03-py3"

#: A sentence, one that says the same in other words, one that shares its words and says something else.
TRIPLES = [
    ("A man is playing a guitar.", "Someone performs music on a stringed instrument.", "A man is eating."),
    ("How do I reset my password?", "I cannot log in to my account.", "How do I cook my rice?"),
    ("The stock market fell sharply today.", "Share prices dropped.", "The market sells fresh fish today."),
    ("The cat sat on the mat.", "A kitten rests on a rug.", "The contract sat on the desk unsigned."),
]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("minilm") / "models"
    run_script(EXAMPLE, "build_models.py", "--output", directory)
    return directory


@pytest.fixture(scope="module")
def assembly(models: Path) -> Path:
    return synthesize(EXAMPLE, models.parent / "cdk.out", models=str(models))


@pytest.fixture(scope="module")
def template(assembly: Path) -> Template:
    return read_template(assembly, STACK)


@pytest.fixture(scope="module")
def target_models(template: Template) -> dict[str, str]:
    """The ``TargetModel`` of each ensemble, from the stack's output."""
    targets: dict[str, str] = json.loads(template["Outputs"]["TargetModels"]["Value"])
    return targets


@pytest.fixture(scope="module")
def local(assembly: Path) -> Iterator[LocalEndpoint]:
    with LocalEndpoint.from_assembly(assembly, memory_limit_mib=MEMORY_LIMIT_MIB) as local:
        yield local


@pytest.fixture(scope="module")
def client(local: LocalEndpoint, target_models: dict[str, str]) -> TritonClient:
    index = ModelIndex(target_models)
    return TritonClient.for_endpoint(ENDPOINT, endpoint_url=local.endpoint_url, index=index)


@pytest.fixture(scope="module")
def reference(models: Path) -> SentenceReference:
    """The independent implementation; ``models`` has downloaded the weights."""
    return SentenceReference(user_cache_path("constructs-triton") / "examples" / "all-MiniLM-L6-v2")


def embed(client: TritonClient, *sentences: str) -> NDArray[np.float32]:
    texts = np.array(sentences, dtype=object)[:, np.newaxis]
    embeddings: NDArray[np.float32] = client.infer({"INPUT0": texts}, TargetModel="sentence_embeddings")[
        "embedding"
    ]
    return embeddings


def accuracy(client: TritonClient) -> float:
    """Return the share of 64 held-out pictures that are classified correctly."""
    from split import encode_png, held_out_images

    images, digits = held_out_images()
    pngs = np.array([encode_png(image) for image in images[:64]], dtype=object)[:, np.newaxis]
    labels = client.infer({"image": pngs}, TargetModel="digits")["label"]
    return float(np.mean([int(label) for label in labels[:, 0]] == digits[:64]))


def wait_for_steps(local: LocalEndpoint, steps: set[str]) -> set[str]:
    """Wait until the loaded models are ``steps``, because unloading takes a while."""
    deadline = time.monotonic() + 30
    while loaded_steps(local) != steps and time.monotonic() < deadline:
        time.sleep(0.1)
    return loaded_steps(local)


def loaded_steps(local: LocalEndpoint) -> set[str]:
    """Return the models that have a Python process of this server, from the operating system."""
    (folder,) = folders(local)
    words = {part for line in command_lines_with(str(folder)) for part in line.split("/")}
    return words & (SENTENCE_STEPS | DIGITS_STEPS)


def test_the_template_is_what_the_example_promises(assembly: Path, snapshot: SnapshotAssertion) -> None:
    """The template has the endpoint, its configuration and its model."""
    template = stable_template(assembly / f"{STACK}.template.json")
    assert endpoint_calls(template, ENDPOINT) == snapshot(extension_class=TritonTemplateExtension)


def test_differences_from_the_articles_calls(template: Template) -> None:
    """The calls differ from the article's only in parameters that README.md explains."""
    container = {"Image": ARTICLE_IMAGE, "ModelDataUrl": "s3://models/", "Mode": "MultiModel"}
    variant = {
        "InstanceType": "ml.g4dn.4xlarge",
        "InitialVariantWeight": 1,
        "InitialInstanceCount": 1,
        "ModelName": "sm-model",
        "VariantName": "AllTraffic",
    }
    article = {
        "create_model": {
            "ModelName": "sm-model",
            "ExecutionRoleArn": "role",
            "PrimaryContainer": container,
        },
        "create_endpoint_config": {
            "EndpointConfigName": "endpoint-config",
            "ProductionVariants": [variant],
        },
        "create_endpoint": {"EndpointName": "endpoint", "EndpointConfigName": "endpoint-config"},
    }
    found = parameters_that_differ(article, endpoint_calls(template, ENDPOINT))
    assert found == {
        "create_model.ModelName": ("sm-model", None),
        "create_model.PrimaryContainer.Environment": (
            None,
            {"SAGEMAKER_TRITON_LOG_VERBOSE": "false", "SAGEMAKER_TRITON_PING_MODE": "live"},
        ),
        "create_model.PrimaryContainer.Image": (
            ARTICLE_IMAGE,
            "<account>.dkr.ecr.<AWS::Region>.<AWS::URLSuffix>/sagemaker-tritonserver:26.05-py3",
        ),
        "create_endpoint_config.EndpointConfigName": ("endpoint-config", None),
        "create_endpoint_config.ProductionVariants.0.InferenceAmiVersion": (
            None,
            "al2023-ami-sagemaker-inference-gpu-4-1",
        ),
    }
    readme = (PUBLISHED_SYSTEMS / EXAMPLE / "README.md").read_text()
    assert not [path for path in found if path.rpartition(".")[2] not in readme]


def test_two_sentences_as_bytes_in_one_binary_request(
    local: LocalEndpoint, target_models: dict[str, str], reference: SentenceReference
) -> None:
    """The article's invocation with tritonclient and boto3 returns the embeddings of the reference."""
    text_inputs = ["Sentence 1", "Sentence 2"]
    inputs = [http_client.InferInput("INPUT0", [len(text_inputs), 1], "BYTES")]
    inputs[0].set_data_from_numpy(np.array([[text] for text in text_inputs], dtype=np.object_))
    body, header_length = http_client.InferenceServerClient.generate_request_body(inputs, outputs=[])
    runtime: Any = boto3.client("sagemaker-runtime", endpoint_url=local.endpoint_url)
    mime = "application/vnd.sagemaker-triton.binary+json;json-header-size="
    response = runtime.invoke_endpoint(
        EndpointName=ENDPOINT,
        ContentType=f"{mime}{header_length}",
        Body=body,
        TargetModel=target_models["sentence_embeddings"],
    )
    assert response["ContentType"].startswith(mime)
    result = http_client.InferenceServerClient.parse_response_body(
        response["Body"].read(), header_length=int(response["ContentType"].removeprefix(mime))
    )
    expected = np.stack([reference.embed(text) for text in text_inputs])
    np.testing.assert_allclose(result.as_numpy("embedding"), expected, atol=1e-4)


def test_embeddings_equal_an_independent_forward_pass(
    client: TritonClient, reference: SentenceReference
) -> None:
    """Sentences of different lengths in one batch have the same embeddings as alone, within 1e-4."""
    sentences = [sentence for triple in TRIPLES for sentence in triple]
    expected = np.stack([reference.embed(sentence) for sentence in sentences])
    np.testing.assert_allclose(embed(client, *sentences), expected, atol=1e-4)


@pytest.mark.parametrize(("sentence", "paraphrase", "distractor"), TRIPLES)
def test_meaning_ranks_above_words(
    client: TritonClient, sentence: str, paraphrase: str, distractor: str
) -> None:
    """A paraphrase is more similar than a sentence with more common words and another meaning."""
    anchor, near, far = embed(client, sentence, paraphrase, distractor)
    assert anchor @ near > anchor @ far


def test_the_examples_own_invocation(local: LocalEndpoint, assembly: Path) -> None:
    """invoke.py prints similarities to the first sentence: itself, then the one of the same meaning."""
    printed = run_script(EXAMPLE, "invoke.py", "--endpoint-url", local.endpoint_url, "--assembly", assembly)
    same, paraphrase, other = (float(line.split()[0]) for line in printed.splitlines())
    assert same == 1.0
    assert 1 > paraphrase > other


@pytest.mark.parametrize("kind", ["tensorrt", "onnxruntime"])
def test_the_repositories_for_the_images_own_backends(models: Path, tmp_path: Path, kind: str) -> None:
    """With an engine or the ONNX graph the repository passes the checks for a GPU of image 26.05."""
    engine, environment = tmp_path / "model.plan", tmp_path / "packed.tar.gz"
    engine.write_bytes(plan())
    with tarfile.open(environment, "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("lib/python3.12/os.py"), io.BytesIO())
    options = ["--plan", engine] if kind == "tensorrt" else []
    run_script(
        EXAMPLE,
        "build_models.py",
        *("--encoder", kind, "--environment", environment, "--output", tmp_path / "models", *options),
    )
    target = Target.of(instance_type="ml.g4dn.4xlarge", image_version="26.05", mode="multi-model")
    report = ModelRepository.from_directory(tmp_path / "models").check(target)
    assert not report.findings
    config = (tmp_path / "models" / "bert" / "config.pbtxt").read_text()
    assert f'platform: "{kind}_{"plan" if kind == "tensorrt" else "onnx"}"' in config


def test_long_and_empty_sentences(client: TritonClient) -> None:
    """A sentence is cut after 256 tokens, and an empty sentence has an embedding."""
    long = "triton " * 1000
    embeddings = embed(client, long, long + "and something else", "")
    np.testing.assert_allclose(embeddings[0], embeddings[1], atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(embeddings, axis=1), 1, atol=1e-5)


def test_text_that_is_not_utf8_is_the_callers_error(client: TritonClient) -> None:
    """An error message of the tokenizer is a model error with status 400."""
    with pytest.raises(InvocationError, match="every sentence must be UTF-8") as refused:
        client.infer({"INPUT0": np.array([[b"\xff"]], dtype=object)}, TargetModel="sentence_embeddings")
    assert refused.value.status == 400


def test_both_ensembles_are_loaded_unloaded_and_reloaded(local: LocalEndpoint, client: TritonClient) -> None:
    """If memory has room for one ensemble, calling the other replaces it; results stay the same."""
    before = embed(client, "first")
    assert wait_for_steps(local, SENTENCE_STEPS) == SENTENCE_STEPS
    assert accuracy(client) >= 0.9
    assert wait_for_steps(local, DIGITS_STEPS) == DIGITS_STEPS
    np.testing.assert_array_equal(embed(client, "first"), before)
    assert wait_for_steps(local, SENTENCE_STEPS) == SENTENCE_STEPS
