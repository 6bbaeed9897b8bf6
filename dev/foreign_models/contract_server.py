"""Asks the real Triton server for each case whether the model loads, and what it answers.

The server is the one of the ``local`` extra, 24.10. Its models run in Python 3.10, as in NVIDIA's
image of this release, if this machine has it.
"""

from __future__ import annotations

import http.client
import json
import os
import queue
import re
import shutil
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from constructs_triton_tools.local.server.installation import (
    ModelPython,
    inspect_python,
    make_backends,
)
from constructs_triton_tools.local.server.unix_http import UnixHTTPConnection
from constructs_triton_tools.local.server_check import CheckRun, CheckServer
from foreign_models.contract_cases import ContractCase
from foreign_models.pythons import environment
from triton_model_check.model_repository import ModelRepository

#: Python and NumPy of NVIDIA's image 24.10.
IMAGE_PYTHON, IMAGE_NUMPY = "3.10", "1.26.4"
_SERVERS = 3
_LOAD_SECONDS, _ANSWER_SECONDS = 30.0, 10.0
_LONGEST_TEXT = 400


class NoAnswerError(Exception):
    """The server ended, or did not answer in time."""


@dataclass(frozen=True)
class ImageRun(CheckRun):
    """Servers whose models run in another Python than this program's."""

    python: ModelPython | None = None

    def _request(self, folder: Path, prefix: str) -> dict[str, object]:
        request = super()._request(folder, prefix)
        if self.python is None:
            return request
        path = os.pathsep.join([str(self.python.bin), "/usr/local/bin", "/usr/bin", "/bin"])
        libraries = self.installation.library_path(self.python)
        environment = {
            "HOME": str(self.directory / "home"),
            "PATH": path,
            "LD_LIBRARY_PATH": libraries,
        }
        return {**request, "environment": environment}


def ask(cases: Iterable[ContractCase]) -> dict[str, dict[str, Any]]:
    """Return the server's verdict of each case."""
    with tempfile.TemporaryDirectory(prefix="contract-cases-") as folder:
        repository, scratch = Path(folder) / "repository", Path(folder) / "run"
        scratch.mkdir()
        by_name = {case.name: case for case in cases}
        for case in by_name.values():
            case.write(repository)
        run = _prepared(repository, scratch)
        waiting = queue.SimpleQueue[ContractCase]()
        for case in by_name.values():
            waiting.put(case)
        found: dict[str, dict[str, Any]] = {}
        with ThreadPoolExecutor(_SERVERS) as pool:
            workers = [pool.submit(_work, run, waiting, found) for _ in range(_SERVERS)]
        for worker in workers:
            worker.result()
    python = IMAGE_PYTHON if run.python else "of this program"
    return {name: {"python": python, **found[name]} for name in by_name}


def _prepared(repository: Path, scratch: Path) -> ImageRun:
    run = CheckRun.prepare(ModelRepository.from_directory(repository), scratch)
    python = _image_python()
    if python is not None:
        shutil.rmtree(scratch / "backends")
        make_backends(scratch / "backends", run.installation, python)
    return ImageRun(run.directory, run.models, run.installation, python=python)


def _image_python() -> ModelPython | None:
    """Return an environment with the image's Python and NumPy, or ``None`` without that Python."""
    name = f"python{IMAGE_PYTHON}-numpy{IMAGE_NUMPY}"
    python = environment(name, IMAGE_PYTHON, [f"numpy=={IMAGE_NUMPY}"])
    if python is None:
        return None
    return inspect_python(python)


def _work(
    run: ImageRun, waiting: queue.SimpleQueue[ContractCase], found: dict[str, dict[str, Any]]
) -> None:
    """Take cases until none is left; a server that does not answer is replaced."""
    while not waiting.empty():
        with run.server() as server:
            called: set[str] = set()
            while True:
                try:
                    case = waiting.get_nowait()
                except queue.Empty:
                    return
                verdict = _verdict(server, case, called)
                has_ended = not verdict.pop("is_alive")
                # The model before, which was still being unloaded, can be the cause.
                if has_ended and case.name not in found:
                    waiting.put(case)
                found[case.name] = verdict
                if has_ended:
                    break


def _verdict(server: CheckServer, case: ContractCase, called: set[str]) -> dict[str, Any]:
    """Load the case, send one request, and unload it."""
    for name in case.others:
        if name not in called:
            _post(server, f"/v2/repository/models/{name}/load", {}, _LOAD_SECONDS)
            called.add(name)
    verdict: dict[str, Any] = {"digest": case.digest, "is_alive": True}
    try:
        path = f"/v2/repository/models/{case.name}/load"
        status, text = _post(server, path, {}, _LOAD_SECONDS)
        verdict["load"] = "loads" if status == http.HTTPStatus.OK else _plain(text)
        if verdict["load"] == "loads":
            verdict |= _answer(server, case)
        _post(server, f"/v2/repository/models/{case.name}/unload", {}, _LOAD_SECONDS)
    except NoAnswerError as error:
        verdict["is_alive"] = False
        verdict.setdefault("load", f"no answer: {error}")
        if verdict["load"] == "loads":
            verdict.setdefault("answer", f"no answer: {error}")
    return verdict


def _answer(server: CheckServer, case: ContractCase) -> dict[str, Any]:
    kind = "generate_stream" if case.is_stream else "infer"
    path = f"/v2/models/{case.name}/{kind}"
    status, text = _post(server, path, dict(case.request), _ANSWER_SECONDS)
    if status == http.HTTPStatus.OK and case.is_stream:
        events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
        errors = [event["error"] for event in events if "error" in event]
        return {"status": 500 if errors else status, "answer": _plain(text)}
    return {"status": status, "answer": _plain(text), **_outputs(text)}


def _outputs(text: str) -> dict[str, Any]:
    """Return names, types and shapes of the outputs of an answer, if it has any."""
    try:
        outputs = json.loads(text)["outputs"]
    except (ValueError, KeyError, TypeError):
        return {}
    return {"outputs": [[each["name"], each["datatype"], each["shape"]] for each in outputs]}


def _post(server: CheckServer, path: str, body: object, seconds: float) -> tuple[int, str]:
    connection = UnixHTTPConnection(server.folder / "http.sock", timeout=seconds)
    try:
        connection.request("POST", path, body=json.dumps(body))
        response = connection.getresponse()
        return response.status, response.read().decode("utf-8", "replace")
    except TimeoutError as error:
        raise NoAnswerError(f"within {seconds:.0f} s") from error
    except (OSError, http.client.HTTPException) as error:
        raise NoAnswerError("the server ended") from error
    finally:
        connection.close()


def _plain(text: str) -> str:
    """Return a message on one line, without what differs from run to run."""
    with suppress(ValueError, KeyError, TypeError):
        text = str(json.loads(text)["error"])
    text = re.sub(r"/[^\s'\"]*contract-cases-[^/\s]+/run", "", text)
    text = re.sub(r"/[^\s'\"]*/(lib/python3)", r"\1", text)
    text = re.sub(r"0x[0-9a-f]{6,}", "0x…", text)
    return re.sub(r"\s+", " ", text).strip()[:_LONGEST_TEXT]
