"""Examples about how a server is started, and about NVIDIA's images."""

from __future__ import annotations

from check_examples.onnx_models import relu
from check_examples.repositories import BIG, CLASS, HEAD, IO, ONNX, Example, one
from triton_model_check.model_config.server_answer import Outcome, ServerAnswer
from triton_model_check.model_config.target import Target

KSERVE = Target.named("kserve")
DYNAMO = Target.named("dynamo")
DOCKER = Target.named("docker", image_version="24.10")
_PYTHON = {"n/config.pbtxt": HEAD, "n/1/model.py": CLASS}
_READING = """from pathlib import Path


class TritonPythonModel:
    def initialize(self, args):
        self.words = {path}.read_text().split()

    def execute(self, requests): ...
"""
_REFUSAL = (
    "load failed for model 'm': version 1 is at UNAVAILABLE state: Internal: FileNotFoundError: "
    "[Errno 2] No such file or directory: 'words.txt' At: m/1/model.py(6): initialize"
)


def _answered(outcome: Outcome, reason: str = "") -> Target:
    answer = ServerAnswer("m", outcome, reason, release="24.10")
    return Target.named("server", image_version="24.10", answers=(answer,))


EXAMPLES: dict[str, Example] = {
    "server-shm-size": Example(one(HEAD, **_PYTHON), one(HEAD), KSERVE),
    "server-shm-size: many instances": Example(
        one(HEAD + "instance_group { kind: KIND_CPU count: 65 }\n"),
        one(HEAD + "instance_group { kind: KIND_CPU count: 64 }\n"),
        DOCKER,
    ),
    "server-shm-size: all versions": Example(
        one(HEAD + "version_policy { all { } }\n", **{"m/2/model.py": CLASS}),
        one(HEAD, **{"m/2/model.py": CLASS}),
        KSERVE,
    ),
    "server-shm-calls": Example(
        one('backend: "python"\nmax_batch_size: 128\n' + BIG % 150528),
        one('backend: "python"\nmax_batch_size: 64\n' + BIG % 150528),
        DOCKER,
    ),
    "server-stray-folder": Example(
        one(HEAD, **{"docs/index.md": "..."}), one(HEAD, **{"README.md": "..."}), DOCKER
    ),
    "server-stray-folder: hidden": Example(
        one(HEAD, **{"..data/notes.txt": "..."}), one(HEAD), DOCKER
    ),
    "server-version-unreachable": Example(
        one(HEAD + "version_policy { all { } }\n", **{"m/2/model.py": CLASS}),
        one(HEAD, **{"m/2/model.py": CLASS}),
        DYNAMO,
    ),
    "server-named-config": Example(
        one(HEAD, **{"m/configs/h100.pbtxt": HEAD.replace("TYPE_FP32", "FP32", 1)}),
        one(HEAD, **{"m/configs/h100.pbtxt": HEAD}),
        DOCKER,
    ),
    "target-backend-removed: on a server": Example(
        {
            "m/config.pbtxt": f'platform: "tensorflow_graphdef"\nmax_batch_size: 8\n{IO}',
            "m/1/model.graphdef": b"\x0a\x00",
        },
        {"m/config.pbtxt": ONNX, "m/1/model.onnx": relu()},
        Target.named("server"),
    ),
    "target-backend-of-other-image: on KServe": Example(
        one(HEAD.replace("python", "tensorrtllm")), one(HEAD), KSERVE
    ),
    "target-backend-absent: on a server": Example(
        {"m/config.pbtxt": HEAD.replace("python", "my_backend"), "m/1/model.pkl": "..."},
        one(HEAD),
        Target.named("server"),
    ),
    "server-refused": Example(
        {
            "m/config.pbtxt": HEAD,
            "m/1/model.py": _READING.format(path='Path("words.txt")'),
            "m/1/words.txt": "yes no",
        },
        {
            "m/config.pbtxt": HEAD,
            "m/1/model.py": _READING.format(path='Path(__file__).with_name("words.txt")'),
            "m/1/words.txt": "yes no",
        },
        _answered("rejected", _REFUSAL),
        _answered("loads"),
    ),
}
