"""Two ensembles on one multi-model endpoint, with the real weights of all-MiniLM-L6-v2."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import boto3
import numpy as np
import pytest
from article_calls import article_invocations
from built_example import BuiltExample
from check_examples.torch_and_plan import plan
from example_scripts import PUBLISHED_SYSTEMS, endpoint_calls, run_script
from local_processes import command_lines_with, folders
from numpy.typing import NDArray
from platformdirs import user_cache_path
from sentence_reference import SentenceReference
from syrupy.assertion import SnapshotAssertion
from test_local_endpoints import eventually
from triton_server import needs_server
from tritonclient import http as http_client

from constructs_triton.testing import TritonTemplateExtension, stable_template
from constructs_triton_client import TritonClient
from constructs_triton_core.errors import InvocationError
from constructs_triton_tools.local import LocalEndpoint
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository

BUDGET_MINUTES = 2
pytestmark = needs_server

EXAMPLE, STACK, ENDPOINT = "minilm_ensembles", "MinilmEnsembles", "minilm-ensembles"
PICTURES, SENTENCES = (
    each["TargetModel"].removesuffix(".tar.gz")
    for each in article_invocations(PUBLISHED_SYSTEMS / EXAMPLE)
)
#: Of both ensembles' memory only that of the called one fits.
MEMORY_LIMIT_MIB = 200
SENTENCE_STEPS, PICTURE_STEPS = (
    {"preprocess", "bert-trt", "postprocess"},
    {"dali", "inception_graphdef"},
)
BLUE_ROW_3_COLUMN_8 = 528

#: A sentence, one that says the same in other words, one that shares its words and says something
#: else.
TRIPLES = [
    (
        "A man is playing a guitar.",
        "Someone performs music on a stringed instrument.",
        "A man is eating.",
    ),
    ("How do I reset my password?", "I cannot log in to my account.", "How do I cook my rice?"),
    (
        "The stock market fell sharply today.",
        "Share prices dropped.",
        "The market sells fresh fish today.",
    ),
    (
        "The cat sat on the mat.",
        "A kitten rests on a rug.",
        "The contract sat on the desk unsigned.",
    ),
]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> BuiltExample:
    directory = tmp_path_factory.mktemp("minilm")
    return BuiltExample.build(EXAMPLE, STACK, directory, "--stand-ins", directory / "stand_ins")


@pytest.fixture(scope="module")
def local(built: BuiltExample) -> Iterator[LocalEndpoint]:
    folder = built.models.parent / "stand_ins"
    stand_ins = {path.stem: path for path in folder.iterdir()}
    with LocalEndpoint.from_assembly(
        built.assembly, memory_limit_mib=MEMORY_LIMIT_MIB, stand_ins=stand_ins
    ) as local:
        yield local


@pytest.fixture(scope="module")
def client(built: BuiltExample, local: LocalEndpoint) -> TritonClient:
    return built.client(local, ENDPOINT)


@pytest.fixture(scope="module")
def reference(built: BuiltExample) -> SentenceReference:
    """The independent implementation; ``built`` has downloaded the weights."""
    return SentenceReference(user_cache_path("constructs-triton") / "examples" / "all-MiniLM-L6-v2")


def embed(client: TritonClient, *sentences: str) -> NDArray[np.float32]:
    texts = np.array(sentences, dtype=object)[:, np.newaxis]
    embeddings: NDArray[np.float32] = client.infer({"INPUT0": texts}, TargetModel=SENTENCES)[
        "embedding"
    ]
    return embeddings


def best_class(client: TritonClient) -> int:
    """Return the class of the example's picture."""
    file = np.fromfile(PUBLISHED_SYSTEMS / "dali_inception" / "picture.jpg", dtype=np.uint8)
    (scores,) = client.infer({"INPUT": file[np.newaxis]}, TargetModel=PICTURES)["OUTPUT"]
    return int(scores.argmax())


def loaded_steps(local: LocalEndpoint) -> set[str]:
    """Return the models that have a Python process of this server, from the operating system."""
    (folder,) = folders(local)
    words = {part for line in command_lines_with(str(folder)) for part in line.split("/")}
    return words & (SENTENCE_STEPS | PICTURE_STEPS)


def test_the_template_is_what_the_example_promises(
    built: BuiltExample, snapshot: SnapshotAssertion
) -> None:
    """The template has the endpoint, its configuration and its model."""
    template = stable_template(built.assembly / f"{STACK}.template.json")
    assert endpoint_calls(template, ENDPOINT) == snapshot(extension_class=TritonTemplateExtension)


def test_every_difference_from_the_article_is_explained(built: BuiltExample) -> None:
    """Each parameter of the article's calls is in the template,
    or the README's table has the reason.
    """
    assert built.unexplained(ENDPOINT) == set()


def test_saving_of_the_article() -> None:
    """``savings.py`` prints 50 percent, more than 13,000 USD a year."""
    last = run_script(EXAMPLE, "savings.py").splitlines()[-1]
    assert last.endswith("50%")
    assert Decimal(last.split()[1].replace(",", "")) > 13_000


def test_picture_with_json_as_in_the_article(local: LocalEndpoint) -> None:
    """The article's first invocation, JSON with boto3, returns 1,001 probabilities."""
    (invocation, _) = article_invocations(PUBLISHED_SYSTEMS / EXAMPLE)
    picture = np.fromfile(PUBLISHED_SYSTEMS / "dali_inception" / "picture.jpg", dtype=np.uint8)
    rv2 = np.expand_dims(picture, 0)
    payload = {
        "inputs": [{"name": "INPUT", "shape": rv2.shape, "datatype": "UINT8", "data": rv2.tolist()}]
    }
    runtime: Any = boto3.client("sagemaker-runtime", endpoint_url=local.endpoint_url)
    response = runtime.invoke_endpoint(
        EndpointName=ENDPOINT, Body=json.dumps(payload), **invocation
    )
    (output,) = json.loads(response["Body"].read().decode("utf8"))["outputs"]
    assert output["shape"] == [1, 1001]
    assert int(np.argmax(output["data"])) == BLUE_ROW_3_COLUMN_8


def test_two_sentences_as_bytes_in_one_binary_request(
    local: LocalEndpoint, reference: SentenceReference
) -> None:
    """The article's invocation with tritonclient and boto3 returns the
    embeddings of the reference.
    """
    (_, invocation) = article_invocations(PUBLISHED_SYSTEMS / EXAMPLE)
    text_inputs = ["Sentence 1", "Sentence 2"]
    inputs = [http_client.InferInput("INPUT0", [len(text_inputs), 1], "BYTES")]
    inputs[0].set_data_from_numpy(np.array([[text] for text in text_inputs], dtype=np.object_))
    body, header_length = http_client.InferenceServerClient.generate_request_body(
        inputs, outputs=[]
    )
    runtime: Any = boto3.client("sagemaker-runtime", endpoint_url=local.endpoint_url)
    mime = "application/vnd.sagemaker-triton.binary+json;json-header-size="
    response = runtime.invoke_endpoint(
        EndpointName=ENDPOINT,
        ContentType=f"{mime}{header_length}",
        Body=body,
        **invocation,
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
    """Sentences of different lengths in one batch have the same embeddings as alone,
    within 1e-4.
    """
    sentences = [sentence for triple in TRIPLES for sentence in triple]
    expected = np.stack([reference.embed(sentence) for sentence in sentences])
    np.testing.assert_allclose(embed(client, *sentences), expected, atol=1e-4)


def test_the_examples_own_invocation(local: LocalEndpoint, built: BuiltExample) -> None:
    """invoke.py prints the picture's class and similarities;
    the paraphrase is nearer than the other.
    """
    options = ["--endpoint-url", local.endpoint_url, "--assembly", built.assembly]
    picture, *sentences = run_script(EXAMPLE, "invoke.py", *options).splitlines()
    assert picture.endswith(f"class {BLUE_ROW_3_COLUMN_8}")
    same, paraphrase, other = (float(line.split()[0]) for line in sentences)
    assert same == 1.0
    assert 1 > paraphrase > other


@pytest.fixture(scope="module")
def checkpoint(built: BuiltExample) -> Path:
    """The weights with another configuration, as a checkpoint of the user;
    ``built`` has downloaded them.
    """
    weights = user_cache_path("constructs-triton") / "examples" / "all-MiniLM-L6-v2"
    folder = built.models.parent / "mine"
    folder.mkdir()
    for name in ("model.safetensors", "tokenizer.json"):
        (folder / name).symlink_to(weights / name)
    config = json.loads((weights / "config.json").read_text()) | {"max_position_embeddings": 64}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize("encoder", ["tensorrt", "onnxruntime"])
def test_repositories_of_your_own_checkpoint_for_the_images_backends(
    checkpoint: Path, tmp_path: Path, encoder: str
) -> None:
    """With a plan or the ONNX file the sentence ensemble passes the checks
    for a GPU of image 24.09.
    """
    engine, environment = tmp_path / "model.plan", tmp_path / "packed.tar.gz"
    engine.write_bytes(plan("10.4.0.26"))
    with tarfile.open(environment, "w:gz") as archive:
        site_packages = "lib/python3.10/site-packages"
        for name in (
            "bin/activate",
            "lib/python3.10/os.py",
            f"{site_packages}/tokenizers/__init__.py",
        ):
            archive.addfile(tarfile.TarInfo(name), io.BytesIO())
    options = ["--plan", engine] if encoder == "tensorrt" else []
    folders = ["--output", tmp_path / "models", "--stand-ins", tmp_path / "stand_ins"]
    words = ["--checkpoint", checkpoint, "--encoder", encoder, "--environment", environment]
    run_script(EXAMPLE, "build_models.py", *words, *folders, *options)
    hardware = {"instance_type": "ml.g4dn.4xlarge", "image_version": "24.09"}
    target = Target.named("sagemaker-multi-model", **hardware)
    models = tmp_path / "models" / SENTENCES
    report = ModelRepository.from_directory(models).check(target)
    assert not report.findings
    config = (models / "bert-trt" / "config.pbtxt").read_text()
    assert f'platform: "{encoder}_{"plan" if encoder == "tensorrt" else "onnx"}"' in config
    assert 'string_value: "64"' in (models / "preprocess" / "config.pbtxt").read_text()


def test_long_and_empty_sentences(client: TritonClient) -> None:
    """A sentence is cut after 256 tokens, and an empty sentence has an embedding."""
    long = "triton " * 1000
    embeddings = embed(client, long, long + "and something else", "")
    np.testing.assert_allclose(embeddings[0], embeddings[1], atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(embeddings, axis=1), 1, atol=1e-5)


def test_text_that_is_not_utf8_is_the_callers_error(client: TritonClient) -> None:
    """An error message of the tokenizer is a model error with status 400."""
    with pytest.raises(InvocationError, match="every sentence must be UTF-8") as refused:
        client.infer({"INPUT0": np.array([[b"\xff"]], dtype=object)}, TargetModel=SENTENCES)
    assert refused.value.status == 400


def test_both_ensembles_are_loaded_unloaded_and_reloaded(
    local: LocalEndpoint, client: TritonClient
) -> None:
    """If memory has room for one ensemble, calling the other replaces it; results stay the same."""
    before = embed(client, "first")
    assert eventually(lambda: loaded_steps(local) == SENTENCE_STEPS)
    assert best_class(client) == BLUE_ROW_3_COLUMN_8
    assert eventually(lambda: loaded_steps(local) == PICTURE_STEPS)
    np.testing.assert_array_equal(embed(client, "first"), before)
    assert eventually(lambda: loaded_steps(local) == SENTENCE_STEPS)
