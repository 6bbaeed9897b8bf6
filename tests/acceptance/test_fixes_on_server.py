"""Applies all fixes to repositories that the real server loads, and asks the server again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import RemoteDisconnected
from pathlib import Path
from typing import Any

import pytest
from backports import tarfile
from check_examples import EXAMPLES, write
from check_examples.repositories import HEAD, IO, TWO_OUTPUTS, Files
from parts import part
from triton_server import needs_server

from constructs_triton_tools.local.server.unix_http import UnixHTTPConnection
from constructs_triton_tools.local.server_check import CheckRun, CheckServer, _NoAnswerError
from triton_model_check.cli.fixing import fix_all
from triton_model_check.cli.target_check import Checked
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository

pytestmark = needs_server
BUDGET_MINUTES = 4
PROJECT = Path(__file__).parents[2]
ORACLES = PROJECT / "packages" / "check" / "tests" / "contract"
#: The release of the server that the tests run.
TARGET = Target.named("server", image_version="24.10")

_ECHO = """import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def execute(self, requests):
        tensors = [pb_utils.get_input_tensor_by_name(each, "X").as_numpy() for each in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", each)]) for each in tensors]
"""
_PARAMETER = 'parameters { key: "mode" value { string_value: "fast" } }\n'
_TWO_STEPS = """platform: "ensemble"
max_batch_size: 8
input [ { name: "X" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 4 ] } ]
ensemble_scheduling { step [
  { model_name: "m" model_version: -1
    input_map { key: "X" value: "X" } output_map { key: "Y" value: "T" } },
  { model_name: "m" model_version: -1
    input_map { key: "X" value: "T" } output_map { key: "Y" value: "Y" }
    output_map { key: "Y" value: "Y" } }
] }
"""
#: Models that answer, with what a fix changes.
ANSWERING: dict[str, Files] = {
    "a key twice": {"m/config.pbtxt": HEAD + _PARAMETER * 2, "m/1/model.py": _ECHO},
    "an output that is absent": {
        "m/config.pbtxt": HEAD.replace(IO, TWO_OUTPUTS),
        "m/1/model.py": _ECHO,
    },
    "a version that is absent": {
        "m/config.pbtxt": HEAD + "version_policy { specific { versions: [ 1, 2 ] } }\n",
        "m/1/model.py": _ECHO,
    },
    "a misspelled output": {
        "m/config.pbtxt": HEAD.replace('"Y"', '"scores"'),
        "m/1/model.py": _ECHO.replace('"Y"', '"scorse"').replace(
            "return [", 'also = "scores"\n        return ['
        ),
    },
    "an ensemble": {
        "m/config.pbtxt": HEAD,
        "m/1/model.py": _ECHO,
        "pipe/config.pbtxt": _TWO_STEPS,
        "pipe/1": None,
    },
}


def _loading_cases(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the recorded cases that the server loads, the sample repositories and the examples."""
    for name in ("oracle", "oracle_onnx"):
        (packed,) = (ORACLES / name).glob("cases.tar.*")
        with tarfile.open(packed) as archive:
            archive.extractall(folder / name, filter="data")
        verdicts = json.loads((ORACLES / name / "verdicts.json").read_text(encoding="utf-8"))
        for case, recorded in verdicts.items():
            if recorded["verdict"] == "loads":
                yield f"{name}/{case}", folder / name / case
    for repository in (PROJECT / "assets" / "model_repositories").iterdir():
        yield f"assets/{repository.name}", repository
    for key, example in EXAMPLES.items():
        yield f"example/{key}", write(example.failing, folder / "examples" / key)
    for key, files in ANSWERING.items():
        yield f"answering/{key}", write(files, folder / "answering" / key)


def _fixed_copy(root: Path, copy: Path) -> bool:
    """Copy a repository and apply all fixes to the copy; return whether one changed anything."""

    def check(path: Path) -> Checked:
        repository = ModelRepository.from_directory(path)
        return Checked(repository.check(TARGET, is_packed=False), TARGET)

    shutil.copytree(root, copy, symlinks=True, ignore_dangling_symlinks=True)
    _, _, files = fix_all(check, copy, is_unsafe=True)
    return bool(files)


class _Answers:
    """What a server says of each model of a repository, and what the models answer."""

    def __init__(self, root: Path, folder: Path, requests: dict[str, Any] | None = None) -> None:
        self.requests: dict[str, Any] = {}
        self.found: dict[str, dict[str, Any]] = {}
        folder.mkdir(parents=True)
        run = CheckRun.prepare(ModelRepository.from_directory(root), folder)
        # A note says that an empty backend replaces the model's own, so the server says nothing.
        for name in [name for name, each in run.models.items() if not each.notes]:
            # Some models end the server, which is the verdict that they do not load.
            with run.server() as server, suppress(_NoAnswerError):
                if server.load(name, 30).outcome == "loads":
                    known = (requests or {}).get(name)
                    self.requests[name] = known or _zeros(server, name)
                    self.found[name] = _answer(server, name, self.requests[name], folder)


def _zeros(server: CheckServer, name: str) -> dict[str, Any]:
    """The smallest request of a model."""
    _, text = server.request("GET", f"/v2/models/{name}/config", 20)
    config = json.loads(text)
    batch = [1] if config.get("max_batch_size") else []
    inputs = []
    for tensor in config.get("input", []):
        shape = batch + [max(int(size), 1) for size in tensor["dims"]]
        datatype = tensor["data_type"].removeprefix("TYPE_").replace("STRING", "BYTES")
        count = 1
        for size in shape:
            count *= size
        zeros = [""] * count if datatype == "BYTES" else [0] * count
        inputs.append({"name": tensor["name"], "datatype": datatype, "shape": shape, "data": zeros})
    return {"inputs": inputs}


def _answer(
    server: CheckServer, name: str, request: dict[str, Any], folder: Path
) -> dict[str, Any]:
    """The response of a model, or its error."""
    connection = UnixHTTPConnection(server.folder / "http.sock", timeout=5)
    try:
        connection.request("POST", f"/v2/models/{name}/infer", json.dumps(request))
        text = connection.getresponse().read().decode()
    except (TimeoutError, RemoteDisconnected):  # a model that never answers, or ends the server
        return {"error": "no answer"}
    finally:
        connection.close()
    answer: dict[str, Any] = json.loads(text.replace(str(folder), "FOLDER"))
    return answer


@pytest.fixture(scope="module")
def fixed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    """The repositories that a fix changes, with their fixed copies."""
    folder = tmp_path_factory.mktemp("fixes")
    pairs = {}
    for number, (name, root) in enumerate(_loading_cases(folder)):
        copy = folder / "fixed" / str(number)
        if _fixed_copy(root, copy):
            pairs[name] = (root, copy)
    return pairs


def _keeps(before: dict[str, Any], after: dict[str, Any] | None) -> bool:
    """Whether a model still loads, and its answer has every output that it had."""
    if after is None:
        return False
    return "error" in before or all(
        output in after.get("outputs", []) for output in before["outputs"]
    )


def test_fixed_repository_loads_and_answers_as_before(
    fixed: dict[str, tuple[Path, Path]], tmp_path: Path
) -> None:
    """Every model that the server loads before ``--unsafe-fixes`` loads after it.

    A model that answers a request answers the same request with the same outputs; a fix may add an
    output that was left out.
    """
    assert {name for name in fixed if name.startswith("answering/")} >= {
        "answering/a key twice",
        "answering/a version that is absent",
        "answering/an ensemble",
    }

    def compare(number: int, name: str) -> str | None:
        root, copy = fixed[name]
        before = _Answers(root, tmp_path / f"{number}_before")
        if not before.found:
            return None
        after = _Answers(copy, tmp_path / f"{number}_after", before.requests)
        changed = {each: after.found.get(each) for each in before.found}
        is_same = all(
            _keeps(answer, after.found.get(each)) for each, answer in before.found.items()
        )
        return None if is_same else f"{name}: {before.found} -> {changed}"

    compared = part(sorted(fixed))
    with ThreadPoolExecutor(3) as pool:
        broken = list(pool.map(compare, range(len(compared)), compared))
    assert [each for each in broken if each is not None] == []
