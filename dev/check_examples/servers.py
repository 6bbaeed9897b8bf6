"""Examples about how a server is started, and about NVIDIA's images."""

from __future__ import annotations

from check_examples.onnx_models import relu
from check_examples.repositories import CLASS, HEAD, IO, ONNX, Example, one
from triton_model_check.model_config.target import Target

KSERVE = Target.named("kserve")
DOCKER = Target.named("docker", image_version="24.10")
_PYTHON = {"n/config.pbtxt": HEAD, "n/1/model.py": CLASS}

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
    "server-stray-folder": Example(
        one(HEAD, **{"docs/index.md": "..."}), one(HEAD, **{"README.md": "..."}), DOCKER
    ),
    "server-stray-folder: hidden": Example(
        one(HEAD, **{"..data/notes.txt": "..."}), one(HEAD), DOCKER
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
}
