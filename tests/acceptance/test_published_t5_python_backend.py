"""T5 on the Python backend: both endpoints of the example,
compared with an independent implementation.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import numpy as np
import pytest
from article_calls import article_invocations
from built_example import BuiltExample
from example_scripts import PUBLISHED_SYSTEMS, endpoint_calls, run_script
from local_assembly import BUCKET, AssemblyBuilder
from syrupy.assertion import SnapshotAssertion
from t5_reference import T5Reference
from tokenizers import Tokenizer
from triton_server import needs_server

from constructs_triton.testing import TritonTemplateExtension, stable_template
from constructs_triton_client import TritonClient
from constructs_triton_core.errors import InvocationError
from constructs_triton_tools.local import LocalEndpoint
from triton_model_check.model_repository import ModelRepository, pack

BUDGET_MINUTES = 2
pytestmark = needs_server

EXAMPLE, STACK = "t5_python_backend", "T5PythonBackend"
MULTI_MODEL, SINGLE_MODEL = "t5-multi-model", "t5"
MAX_NEW_TOKENS = 16
VERSIONS = ("t5_gated", "t5_relu")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> BuiltExample:
    return BuiltExample.build(EXAMPLE, STACK, tmp_path_factory.mktemp("t5"))


@pytest.fixture(scope="module")
def models(built: BuiltExample) -> Path:
    return built.models


@pytest.fixture(scope="module")
def local(built: BuiltExample) -> Iterator[LocalEndpoint]:
    with LocalEndpoint.from_assembly(built.assembly) as local:
        yield local


@pytest.fixture(scope="module")
def client(built: BuiltExample, local: LocalEndpoint) -> TritonClient:
    return built.client(local, MULTI_MODEL)


def sentences(count: int, length: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Return token ids that are neither padding nor the end."""
    return (
        np.random.RandomState(count * 100 + length)
        .randint(2, 256, (count, length))
        .astype(np.int32)
    )


def padded(tokens: list[list[int]]) -> list[list[int]]:
    """Pad the rows to the longest."""
    longest = max(len(row) for row in tokens)
    return [row + [0] * (longest - len(row)) for row in tokens]


@pytest.mark.parametrize("name", VERSIONS)
def test_tokens_equal_an_independent_forward_pass(
    client: TritonClient, models: Path, name: str
) -> None:
    """A padded batch gives the tokens of the reference,
    which decodes each sentence alone without a cache.
    """
    reference = T5Reference(models / name / "1")
    ids, mask = sentences(6, 40), np.ones((6, 40), dtype=np.int32)
    for row, length in enumerate((40, 33, 20, 9, 3, 1)):
        ids[row, length:], mask[row, length:] = 0, 0
    expected = [
        reference.generate(row[kept == 1].tolist(), MAX_NEW_TOKENS)
        for row, kept in zip(ids, mask, strict=True)
    ]
    assert len({tuple(tokens) for tokens in expected}) == 6
    assert reference.smallest_margin > 1e-4
    result = client.infer({"input_ids": ids, "attention_mask": mask}, TargetModel=name)
    assert result["output"].tolist() == padded(expected)


def test_articles_invocation(local: LocalEndpoint, built: BuiltExample) -> None:
    """The article's invocation, JSON with boto3, returns the tokens of TargetModel."""
    (invocation,) = article_invocations(PUBLISHED_SYSTEMS / EXAMPLE)
    ids = sentences(1, 12)
    tensors = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    payload = {
        "inputs": [
            {"name": name, "shape": list(data.shape), "datatype": "INT32", "data": data.tolist()}
            for name, data in tensors.items()
        ]
    }
    runtime: Any = boto3.client("sagemaker-runtime", endpoint_url=local.endpoint_url)
    response = runtime.invoke_endpoint(
        EndpointName=MULTI_MODEL,
        Body=json.dumps(payload),
        **{**invocation, "TargetModel": built.target_models["t5_gated"]},
    )
    body = json.loads(response["Body"].read().decode("utf8"))
    output_ids = np.array(body["outputs"][0]["data"]).reshape(1, -1)
    expected = T5Reference(built.models / "t5_gated" / "1").generate(
        ids[0].tolist(), MAX_NEW_TOKENS
    )
    assert output_ids.tolist() == [expected]


def test_the_examples_own_invocation(local: LocalEndpoint, built: BuiltExample) -> None:
    """invoke.py translates sentences; with ``--tokens`` it prints those of the reference."""
    reference = T5Reference(built.models / "t5_relu" / "1")
    options = [
        "--model",
        "t5_relu",
        "--endpoint-url",
        local.endpoint_url,
        "--assembly",
        built.assembly,
    ]
    file = built.models.parent / "tokenizer.json"
    words = ["the house", "is", *options, "--tokenizer", file]
    printed = run_script(EXAMPLE, "invoke.py", *words, "--tokens").splitlines()
    tokenizer = Tokenizer.from_file(str(file))
    expected = [
        reference.generate(tokenizer.encode(sentence).ids, MAX_NEW_TOKENS) for sentence in words[:2]
    ]
    assert [[int(token) for token in line.split()] for line in printed] == padded(expected)
    assert run_script(EXAMPLE, "invoke.py", *words).splitlines() == tokenizer.decode_batch(expected)


def test_the_single_model_endpoint_answers_alike(
    local: LocalEndpoint, client: TritonClient
) -> None:
    """A model gives the same tokens on the single-model and on the multi-model endpoint."""
    inputs = {"input_ids": sentences(3, 8), "attention_mask": np.ones((3, 8), dtype=np.int32)}
    single = TritonClient.for_endpoint(SINGLE_MODEL, endpoint_url=local.endpoint_url)
    np.testing.assert_array_equal(
        single.infer(inputs)["output"], client.infer(inputs, TargetModel="t5_relu")["output"]
    )


def test_requests_that_are_batched_together_do_not_see_each_other(client: TritonClient) -> None:
    """Many simultaneous requests of one length, which share batches,
    give the same tokens as each alone.
    """
    requests = [
        {"input_ids": row[np.newaxis], "attention_mask": np.ones((1, 10), dtype=np.int32)}
        for row in sentences(24, 10)
    ]
    alone = [client.infer(each, TargetModel="t5_gated")["output"].tolist() for each in requests]
    together = client.infer_many(requests, max_concurrency=8, TargetModel="t5_gated")
    assert [each["output"].tolist() for each in together] == alone


def test_a_token_that_does_not_exist_is_the_callers_error(client: TritonClient) -> None:
    """An error message of the model is a model error with status 400."""
    inputs = {
        "input_ids": np.array([[5, 256]], dtype=np.int32),
        "attention_mask": np.ones((1, 2), dtype=np.int32),
    }
    with pytest.raises(
        InvocationError, match="every token must be from 0 to 255, got 5 to 256"
    ) as refused:
        client.infer(inputs, TargetModel="t5_relu")
    assert refused.value.status == 400


@pytest.mark.parametrize("name", [MULTI_MODEL, SINGLE_MODEL])
def test_the_template_is_what_the_example_promises(
    built: BuiltExample, snapshot: SnapshotAssertion, name: str
) -> None:
    """The template has both endpoints, their configurations and their models."""
    template = stable_template(built.assembly / f"{STACK}.template.json")
    assert endpoint_calls(template, name) == snapshot(extension_class=TritonTemplateExtension)


def test_every_difference_from_the_article_is_explained(built: BuiltExample) -> None:
    """Each parameter of the article's calls is in the template,
    or the README's table has the reason.
    """
    assert built.unexplained(MULTI_MODEL) == set()


# --- the packed environment -----------------------------------------------------------------------


def write_environment(path: Path, python: str) -> Path:
    """Write an archive with the file names of conda-pack, for one Python version."""
    with tarfile.open(path, "w:gz") as archive:
        for name in ("bin/activate", f"lib/python{python}/site-packages/torch/__init__.py"):
            archive.addfile(tarfile.TarInfo(name), io.BytesIO())
    return path


def write_working_environment(path: Path, note: Path) -> Path:
    """Pack an environment of this Python that writes a file when it is used."""
    minor = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site_packages = f"lib/{minor}/site-packages"
    leave_note = f"import pathlib, sys; pathlib.Path({str(note)!r}).write_text(sys.prefix)\n"
    texts = {
        "bin/activate": 'PATH="$(dirname "$(dirname "$BASH_SOURCE")")/bin:$PATH"\nexport PATH\n',
        "pyvenv.cfg": f"home = {Path(sys.base_prefix, 'bin')}\n",
        f"{site_packages}/note.pth": leave_note,
        f"{site_packages}/numpy.pth": f"{Path(np.__file__).parents[1]}\n",
    }
    with tarfile.open(path, "w:gz") as archive:
        for name, text in texts.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
        python = tarfile.TarInfo("bin/python3")
        python.type, python.linkname = tarfile.SYMTYPE, str(Path(sys.executable).resolve())
        archive.addfile(python)
    return path


def test_a_packed_environment_is_unpacked_and_used(tmp_path: Path) -> None:
    """The server starts model.py in the packed environment of the model's folder."""
    note = tmp_path / "note"
    environment = write_working_environment(tmp_path / "packed.tar.gz", note)
    built = tmp_path / "models"
    run_script(EXAMPLE, "build_models.py", "--output", built, "--environment", environment)
    assembly = AssemblyBuilder(tmp_path / "cdk.out")
    repository = ModelRepository.from_directory(built)
    pack(repository, ["t5_relu"], assembly.directory, archive_name="asset.t5.tar.gz")
    assembly.files["t5"] = {
        "source": {"path": "asset.t5.tar.gz", "packaging": "file"},
        "destinations": {"here": {"bucketName": BUCKET, "objectKey": "t5.tar.gz"}},
    }
    assembly.single_model("T5", "t5.tar.gz")
    assembly.endpoint("Endpoint", {"AllTraffic": ("T5", 1)}, name="packed")
    with LocalEndpoint.from_assembly(assembly.write()) as local:
        client = TritonClient.for_endpoint("packed", endpoint_url=local.endpoint_url)
        ids = sentences(1, 6)
        output = client.infer({"input_ids": ids, "attention_mask": np.ones_like(ids)})["output"]
        assert "python_env" in note.read_text()
    expected = T5Reference(built / "t5_relu" / "1").generate(ids[0].tolist(), MAX_NEW_TOKENS)
    assert output.tolist() == [expected]


def build_pytorch(directory: Path, models: Path, python: str) -> Path:
    """Build the repository for PyTorch, with the checkpoint's files and an
    environment of this Python.
    """
    checkpoint = directory / "checkpoint"
    checkpoint.mkdir(parents=True)
    (checkpoint / "config.json").write_bytes(
        (models / "t5_relu" / "1" / "config.json").read_bytes()
    )
    (checkpoint / "model.safetensors").write_bytes(b"")
    environment = write_environment(directory / "packed.tar.gz", python)
    options = ["--framework", "pytorch", "--checkpoint", checkpoint, "--environment", environment]
    run_script(EXAMPLE, "build_models.py", "--output", directory / "models", *options)
    return directory / "models"


def check(models: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "constructs_triton.cli", "check", str(models)]
    target = ["--gpus", "1", "--image-version", "26.05"]
    return subprocess.run(
        [*command, *target], capture_output=True, text=True, check=False, cwd=PUBLISHED_SYSTEMS
    )


def test_the_environments_python_has_to_be_the_images(tmp_path: Path, models: Path) -> None:
    """An environment with the image's Python passes the checks;
    one with the article's Python does not.
    """
    good = check(build_pytorch(tmp_path / "good", models, "3.12"))
    assert good.returncode == 0, good.stdout + good.stderr
    bad = check(build_pytorch(tmp_path / "bad", models, "3.8"))
    assert bad.returncode == 1
    assert "the environment has Python 3.8, the image has Python 3.12" in bad.stdout + bad.stderr
