"""Repositories that Triton loads and that cannot be served,
and how to ask the real server about them.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest
from check_examples import Files
from check_examples.repositories import CLASS
from local_assembly import PYTHON_CONFIG, adding_model, below, write_archive
from provoked_failures import server_settings
from test_local_calls import calling_model

from constructs_triton_tools.local.server.server import TritonServer
from constructs_triton_tools.local.server.unix_http import UnixHTTPConnection
from constructs_triton_tools.local.server_check import CheckRun
from constructs_triton_tools.local.sources.specs import ContainerSpec
from triton_model_check.model_repository import ModelRepository

Inputs = list[dict[str, Any]]

#: Stands for the model of the examples, which does nothing, so that only the mistake can make a
#: request fail.
ECHO = """import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        inputs = [pb_utils.get_input_tensor_by_name(each, "X").as_numpy() for each in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", each)]) for each in inputs]
"""
READER = """import json
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        self.weights = f"{args['model_repository']}/{args['model_version']}/weights.json"

    def execute(self, requests):
        with open(self.weights) as file:
            factor = json.load(file)
        inputs = [pb_utils.get_input_tensor_by_name(each, "X").as_numpy() for each in requests]
        outputs = [pb_utils.Tensor("Y", each * np.float32(factor)) for each in inputs]
        return [pb_utils.InferenceResponse([each]) for each in outputs]
"""
_TYPES = (
    "BOOL",
    "UINT8",
    "UINT16",
    "UINT32",
    "UINT64",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "FP32",
    "FP64",
)


def tensor(datatype: str = "FP32", name: str = "X") -> dict[str, Any]:
    """Four values in a batch of one."""
    values = (
        [True] * 4 if datatype == "BOOL" else list("abcd") if datatype == "BYTES" else [1, 2, 3, 4]
    )
    return {"name": name, "datatype": datatype, "shape": [1, 4], "data": values}


class Proof(NamedTuple):
    """What the server answers to every request that the mistake leaves;
    ``None`` if it never answers.
    """

    status: int | None
    model: str = "m"
    requests: Sequence[Inputs] = ([tensor()], [tensor(), tensor()], [])


#: By the key of the example whose two repositories are loaded.
PROOFS = {
    "tensor-duplicate-input": Proof(400),
    "tensor-data-type-number": Proof(400, requests=[[tensor(each)] for each in (*_TYPES, "BYTES")]),
    "python-execute": Proof(500, requests=[[tensor()]]),
    "python-execute-result": Proof(500, requests=[[tensor()]]),
    "python-execute-result: dict": Proof(500, requests=[[tensor()]]),
    "python-execute-result: tensors": Proof(500, requests=[[tensor()]]),
    "python-execute-result: yield": Proof(500, requests=[[tensor()]]),
    "python-execute-signature": Proof(500, requests=[[tensor()]]),
    "python-request-fails": Proof(500, requests=[[tensor()]]),
    "python-request-fails: absent input": Proof(500, requests=[[tensor()]]),
    "python-completion-type": Proof(400, requests=[[tensor()]]),
    "python-request-fails: bare method": Proof(500, requests=[[tensor()]]),
    "python-request-fails: unbound": Proof(500, requests=[[tensor()]]),
    "python-request-fails: attribute": Proof(500, requests=[[tensor()]]),
    "python-request-fails: keyword": Proof(500, requests=[[tensor()]]),
    "python-request-fails: keywords of a tensor": Proof(500, requests=[[tensor()]]),
    "python-request-fails: list": Proof(500, requests=[[tensor()]]),
    "python-request-fails: method": Proof(500, requests=[[tensor()]]),
    "python-request-fails: name": Proof(500, requests=[[tensor()]]),
    "python-request-fails: name of the backend": Proof(500, requests=[[tensor()]]),
    "python-request-fails: text as list": Proof(500, requests=[[tensor()]]),
    "python-request-fails: tensor as list": Proof(500, requests=[[tensor()]]),
    "python-request-fails: output as list": Proof(500, requests=[[tensor()]]),
    "python-request-fails: number as text": Proof(500, requests=[[tensor()]]),
    "python-request-fails: name in a list": Proof(500, requests=[[tensor()]]),
    "python-request-fails: list of names": Proof(500, requests=[[tensor()]]),
    "python-request-fails: input": Proof(500, requests=[[tensor()]]),
    "python-no-tensors": Proof(400, requests=[[tensor()]]),
    "python-no-tensors: config.pbtxt in the version folder": Proof(400, requests=[[tensor()]]),
    "ensemble-duplicate-tensor": Proof(400, "pipe"),
    "ensemble-writes-input": Proof(None, "pipe", [[tensor()]]),
}
#: Proved by tests of their own, because they need other models, or do not reach a request.
PROVED_OTHERWISE = {
    "file-git-lfs-pointer": "a model that reads its weights at the first request",
    "layout-folder-is-model": "the container does not start",
    "layout-no-model": "the container does not start",
    "layout-no-model: no folder of models": "the container does not start",
    "layout-special-file": "no archive can contain it",
    "layout-special-file: config.pbtxt": "no archive can contain it",
    "python-called-model": "a caller without the called model",
    "python-calls-on-multi-model-endpoint": "a multi-model endpoint",
    "python-request-fails: called input": "caller_input_misspelt of the foreign models",
    "python-request-fails: called output": "caller_output_misspelt of the foreign models",
    "python-request-fails: called version": "caller_call_version_absent of the foreign models",
    "python-request-fails: error": "its fixed twin answers with an error too",
    "python-request-fails: event loop": (
        "caller_async_call_in_plain_execute of the foreign models"
    ),
    "python-request-fails: incomplete request": ("caller_call_without_names of the foreign models"),
    "python-request-fails: request": "caller_call_keyword_outputs of the foreign models",
    "python-execute-result: decoupled": "a decoupled model answers with a stream only",
    "python-environment-numpy": "an environment with NumPy 2",
    "sagemaker-decoupled": "SageMaker's front end",
    "sagemaker-decoupled: step": "SageMaker's front end",
    "sagemaker-target-model": "SageMaker's front end",
    "sagemaker-archive-order": "a multi-model endpoint",
    "sagemaker-archive-order: nested ensembles": "a multi-model endpoint",
    "sagemaker-archive-order: another ensemble": "a multi-model endpoint",
    "sagemaker-archive-order: stray folder": "a multi-model endpoint",
}
#: No request can be sent on this machine; the source of the rule is all there is.
NOT_PROVED = {
    "target-plan-of-several-gpus": (
        "needs GPUs and TensorRT: NVIDIA's documentation of engine plans"
    ),
    "target-storage": "needs SageMaker: its documentation of volumes",
    "text-size": "a limit of the check, not of Triton, which answers",
    "ignore-without-reason": "a rule about comments, which Triton ignores",
    "tree-features": (
        "needs the FIL backend: RapidsModel::predict. Its stand-in, LightGBM, compares the numbers "
        "and refuses the request; FIL answers with values of other rows"
    ),
}


def runnable(files: Files) -> dict[str, str]:
    """The files of an example with a model that answers."""
    kept = {f"{name}/.keep": "" for name, content in files.items() if content is None}
    texts = {
        name: text.replace(CLASS, ECHO) for name, text in files.items() if isinstance(text, str)
    }
    return {**kept, **texts}


def renamed(files: Mapping[str, str], number: int) -> dict[str, str]:
    """The files with a number after the names of their models,
    so that one server can load several cases.
    """
    models = {path.partition("/")[0] for path in files}

    def text_of(text: str) -> str:
        for model in models:
            text = text.replace(f'"{model}"', f'"{model}{number}"')
        return text

    parts = ((path.partition("/"), text) for path, text in files.items())
    return {f"{model}{number}/{path}": text_of(text) for (model, _, path), text in parts}


class ServerOfModels:
    """A Triton server that loads the models of a folder one by one,
    without SageMaker's front end.
    """

    def __init__(self, repository: Path, scratch: Path) -> None:
        self._run = CheckRun.prepare(ModelRepository.from_directory(repository), scratch)

    @contextmanager
    def running(self) -> Iterator[ServerOfModels]:
        """Start the server, and stop it at the end."""
        with self._run.server() as server:
            self._folder = server.folder
            yield self

    def load(self, model: str) -> int | None:
        """Load a model and return the status."""
        return self._post(f"/v2/repository/models/{model}/load", {})[0]

    def infer(self, model: str, inputs: Inputs) -> tuple[int | None, str]:
        """Send a request and return the status and the text of the answer."""
        return self._post(f"/v2/models/{model}/infer", {"inputs": inputs})

    def _post(self, path: str, body: object) -> tuple[int | None, str]:
        connection = UnixHTTPConnection(self._folder / "http.sock", timeout=10)
        try:
            connection.request("POST", path, body=json.dumps(body))
            response = connection.getresponse()
            return response.status, response.read().decode()
        except TimeoutError:
            return None, ""
        finally:
            connection.close()


def ask(
    files: Mapping[str, str | Path],
    model: str,
    requests: Sequence[Inputs],
    folder: Path,
    environment: Mapping[str, str] | None = None,
) -> list[tuple[int | None, str]]:
    """Start a container, which loads the model,
    and return the status and the text of each answer.
    """
    variables = {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": model, **(environment or {})}
    archive = _archive(files, folder)
    server = TritonServer(
        "m", ContainerSpec("m", "", "s3://b/m.tar.gz", variables, archive), server_settings()
    )

    async def run() -> list[tuple[int | None, str]]:
        await server.start()
        try:
            return [await _answer(server, inputs) for inputs in requests]
        finally:
            await server.stop()

    return asyncio.run(run())


async def _answer(server: TritonServer, inputs: Inputs) -> tuple[int | None, str]:
    place, timeout = server.invocations, aiohttp.ClientTimeout(total=10)
    try:
        async with place.session.post(
            place.url, json={"inputs": inputs}, timeout=timeout
        ) as response:
            return response.status, await response.text()
    except TimeoutError:
        return None, ""


def _archive(files: Mapping[str, str | Path], folder: Path) -> Path:
    texts = {name: each for name, each in files.items() if isinstance(each, str)}
    archive = write_archive(folder / "model.tar.gz", texts)
    if len(texts) < len(files):
        kept = folder / ".model.tar.gz.files"
        for name, path in files.items():
            if isinstance(path, Path):
                (kept / name).hardlink_to(path)
        with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
            tar.add(kept, arcname=".")
    return archive


def twice(step: str, platform: str = 'platform: "ensemble"') -> dict[str, str]:
    """An ensemble that runs a model twice, and maps input ``X`` to output ``Y``."""
    parts = [("X", "M"), ("M", "Y")]
    steps = ", ".join(
        f'{{ model_name: "{step}" model_version: -1 input_map {{ key: "X" value: "{reads}" }}'
        f' output_map {{ key: "Y" value: "{writes}" }} }}'
        for reads, writes in parts
    )
    tensors = PYTHON_CONFIG.replace('backend: "python"', platform)
    return {"config.pbtxt": f"{tensors}ensemble_scheduling {{ step [ {steps} ] }}\n", "1/.keep": ""}


class Archive(NamedTuple):
    """The files of an archive of a multi-model endpoint, and what its model makes of 5."""

    files: dict[str, str]
    answer: float


_SPACE = 'platform : "ensemble"'
_OTHERS = {**below("OTHER", twice("ADD")), **below("ADD", adding_model(1))}
#: By the key of the example: ``ONE`` is meant to be served, and ``OTHER`` may be served instead.
_ARCHIVES = {
    "sagemaker-archive-order": Archive(
        {**below("ONE", twice("OTHER", _SPACE)), **below("OTHER", adding_model(1))}, 7
    ),
    "sagemaker-archive-order: nested ensembles": Archive(
        {**below("ONE", twice("OTHER")), **_OTHERS}, 9
    ),
    "sagemaker-archive-order: another ensemble": Archive(
        {**below("ONE", twice("OTHER", _SPACE)), **_OTHERS}, 9
    ),
    "sagemaker-archive-order: stray folder": Archive(
        {**below("ONE", adding_model(2)), "OTHER/notes.txt": ""}, 7
    ),
    "python-calls-on-multi-model-endpoint": Archive(
        {**below("ONE", calling_model("OTHER")), **below("OTHER", adding_model(1))}, 51
    ),
}


def archives(one: str, other: str) -> dict[str, Archive]:
    """The archives, with names that begin so.

    No two archives contain folders of the same name, because one server cannot load the steps of
    both.
    """

    def named(text: str, number: int) -> str:
        for word, name in (("ONE", one), ("OTHER", other), ("ADD", "add")):
            text = text.replace(word, f"{name}{number}")
        return text

    return {
        key: Archive(
            {named(path, n): named(text, n) for path, text in each.files.items()}, each.answer
        )
        for n, (key, each) in enumerate(_ARCHIVES.items())
    }


def packed_numpy(version: str, folder: Path) -> Path:
    """A packed environment for this Python with a NumPy from PyPI;
    skipped without an index of packages.
    """
    packages = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    root = folder / f"numpy{version}"
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        f"numpy=={version}",
        "--target",
    ]
    done = subprocess.run([*install, root / packages], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"pip does not install NumPy {version}: {done.stderr.strip()[-300:]}")
    # Before 24.11 a stub of Python 3.11 ignores PYTHONPATH; it finds the packages beside its
    # interpreter.
    (root / "bin").mkdir()
    interpreter = Path(sys.executable).resolve()
    (root / "bin" / "python3").symlink_to(interpreter)
    (root / "pyvenv.cfg").write_text(
        f"home = {interpreter.parent}\ninclude-system-site-packages = false\n"
    )
    here = '$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)'
    (root / "bin" / "activate").write_text(f'export PATH="{here}:$PATH"\n')
    with tarfile.open(folder / f"{version}.tar", "w") as tar:
        tar.add(root, arcname=".")
    return folder / f"{version}.tar"
