"""Models that `constructs-triton model new` writes without a model file run in the real server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from local_assembly import AssemblyBuilder
from triton_server import needs_server

from constructs_triton.cli import main
from constructs_triton_client import TritonClient
from constructs_triton_core.errors import InvocationError
from constructs_triton_tools.local import LocalEndpoint
from triton_model_check.model_repository import ModelRepository

pytestmark = [pytest.mark.e2e, needs_server, pytest.mark.xdist_group("local_endpoints")]

# Data types of tensors that the client sends, and values of them.
VALUES = {
    "BOOL": np.array([[True], [False]]),
    "INT8": np.array([[1], [2]], "i1"),
    "UINT64": np.array([[1], [2]], "u8"),
    "FP16": np.array([[1], [2]], "f2"),
    "FP32": np.array([[1], [2]], "f4"),
    "BYTES": np.array([[b"a"], [b"b"]], object),
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the command writes: two models and their ensemble, and a plain one."""
    folder = tmp_path_factory.mktemp("new") / "models"
    repository = ["-o", str(folder)]
    python = ["model", "new", "--backend", "python"]
    inputs = [word for name in VALUES for word in ("--input", f"in.{name}:{name}:1")]
    outputs = [word for name in VALUES for word in ("--output", f"out.{name}:{name}:2,-1")]
    assert main([*python, "first", *inputs, *outputs, *repository, "--max-batch-size", "4"]) == 0
    last = ["--input", "x:FP32:2,1", "--output", "y:INT64:3"]
    assert main([*python, "last", *last, *repository, "--max-batch-size", "4"]) == 0
    steps = ["--step", "first", "--step", "last:x=out.FP32"]
    assert main(["model", "new", "--backend", "ensemble", "both", *steps, *repository]) == 0
    plain = ["--input", "text:BYTES:1", "--input", "n:INT32:1", "--output", "score:FP32:1"]
    assert main([*python, "plain", *plain, *repository]) == 0
    row = ["--input", "x:FP32:8", "--output", "y:FP32:1", "--max-batch-size", "4"]
    assert main([*python, "rows", *row, *repository]) == 0
    return folder


@pytest.fixture(scope="module")
def local(models: Path) -> Iterator[LocalEndpoint]:
    """An endpoint of the ensemble, and one of each plain model."""
    repository = ModelRepository.from_directory(models)
    builder = AssemblyBuilder(models.parent / "cdk.out")
    for name in ("both", "plain", "rows"):
        builder.serve_packed(repository, name)
    with LocalEndpoint.from_assembly(builder.write()) as local:
        yield local


def test_an_ensemble_of_first_models_answers(local: LocalEndpoint) -> None:
    """Zeros of every data type pass through an ensemble that maps names, in batches."""
    client = TritonClient.for_endpoint("both", endpoint_url=local.endpoint_url)
    found = client.infer({f"in.{name}": values for name, values in VALUES.items()})
    np.testing.assert_array_equal(found["y"], np.zeros((2, 3), "i8"))
    for name, values in VALUES.items():
        if name != "FP32":  # the second model reads it
            zero = b"" if name == "BYTES" else 0
            assert found[f"out.{name}"].dtype == values.dtype
            assert found[f"out.{name}"].tolist() == [[[zero], [zero]]] * 2


def test_a_first_decoupled_model_streams(tmp_path: Path) -> None:
    """Every request gets a stream of responses that ends, also after an error of respond()."""
    new = [
        "model",
        "new",
        "--backend",
        "python",
        "teller",
        "--decoupled",
        "-o",
        str(tmp_path / "models"),
    ]
    assert (
        main([*new, "--input", "text:BYTES:1", "--output", "word:FP32:2", "--output", "n:INT32:1"])
        == 0
    )
    code = tmp_path / "models" / "teller" / "1" / "model.py"
    code.write_text(
        f"{code.read_text()}            if text[0] == "
        "b'bad':\n                raise ValueError(_)\n"
    )
    with LocalEndpoint.from_repository(tmp_path / "models", endpoint="teller") as local:
        client = TritonClient.for_endpoint("teller", endpoint_url=local.endpoint_url)
        with pytest.raises(InvocationError, match="event 1: the model failed, got 0;"):
            list(client.infer_stream({"text": "bad"}))
        events = list(client.infer_stream({"text": "hello"}))
    assert [(event["word"], event["n"]) for event in events] == [([0.0, 0.0], 0)] * 3


def test_invoke_names_the_tensors_of_the_repository(
    local: LocalEndpoint, models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the server names only the wrong tensor, the command adds the right ones,
    if it has the model.
    """
    text, n, other = (("--input", value) for value in ("text=a:BYTES", "n=1:INT32", "txet=a:BYTES"))
    invoke = ["invoke", "plain", "--endpoint-url", local.endpoint_url, "--repository", str(models)]
    for request, expected in (
        (
            (*other, *n),
            'no input "txet"; its inputs in {} are "text" and "n"; did you mean "text"?',
        ),
        (
            (*text, *n, *other),
            'no input "txet"; its inputs in {} are "text" and "n"; did you mean "text"?',
        ),
        (
            (*text, *n, "--output", "s"),
            'no output "s"; its outputs in {} are "score"; use one of them',
        ),
    ):
        assert main([*invoke, *request]) == 1
        assert expected.format(models / "plain") in capsys.readouterr().err
    assert main([*invoke, *other, *n, "--repository", str(tmp_path)]) == 1
    assert "unexpected inference input 'txet' for model 'plain'" in capsys.readouterr().err


def test_hint_about_a_batch_axis_is_followed(
    local: LocalEndpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    """A single row looks like more rows than a batch may have. The option of the hint sends it."""
    row = ",".join(["1"] * 8)
    request = ["invoke", "rows", "--endpoint-url", local.endpoint_url, "--input", f"x={row}:FP32"]
    assert main(request) == 1
    hint = capsys.readouterr().err.strip().rpartition("; add ")[2]
    assert hint == "--batch"
    assert main([*request, hint]) == 0
