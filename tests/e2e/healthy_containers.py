"""Containers that start and serve on the real server; nothing in their logs is a failure."""

from __future__ import annotations

import asyncio
from pathlib import Path

from local_assembly import (
    ADDING_MODEL,
    PYTHON_CONFIG,
    adding_ensemble,
    adding_model,
    below,
    write_archive,
)
from provoked_failures import Provocation, ServerThatKeepsItsLog, server_settings

from constructs_triton_tools.local.sources.specs import ContainerSpec

_ADDING = adding_model(1)["1/model.py"]
_BATCHING = PYTHON_CONFIG.replace("max_batch_size: 0", "max_batch_size: 4")
_WARMUP = (
    'model_warmup { name: "w" batch_size: 0 inputs { key: "X" value {'
    " data_type: TYPE_FP32 dims: 1 zero_data: true } } }"
)


def _healthy(
    name: str, config: str = PYTHON_CONFIG, code: str = _ADDING, **more: str
) -> Provocation:
    """One Python model that is served."""
    return Provocation("", name, below("m", {"config.pbtxt": config, "1/model.py": code, **more}))


def _variable(name: str, value: str) -> Provocation:
    """A container with one more variable."""
    return Provocation(
        "", f"{name}={value}", below("m", adding_model(1)), {f"SAGEMAKER_TRITON_{name}": value}
    )


HEALTHY = [
    _healthy("plain"),
    _healthy("batching", _BATCHING),
    _healthy("dynamic batching", _BATCHING + "dynamic_batching { preferred_batch_size: [ 4 ] }"),
    _healthy("two instances", PYTHON_CONFIG + "instance_group { kind: KIND_CPU count: 2 }"),
    _healthy("warm-up", PYTHON_CONFIG + _WARMUP),
    _healthy(
        "two versions", PYTHON_CONFIG + "version_policy { all { } }", **{"2/model.py": _ADDING}
    ),
    _healthy("folder of an editor", **{".ipynb_checkpoints/model.py": "no version"}),
    _healthy("parameters", PYTHON_CONFIG + 'parameters { key: "a" value { string_value: "b" } }'),
    _healthy(
        "no configuration", "backend: 'python'\n" + PYTHON_CONFIG.replace('backend: "python"', "")
    ),
    _healthy(
        "a module is optional",
        code="print(\"ModuleNotFoundError: No module named 'flash'\")\n" + _ADDING,
    ),
    _healthy(
        "a model that logs",
        code=_ADDING.replace(
            "class Triton", "import logging; logging.warning('MemoryError avoided')\n\nclass Triton"
        ),
    ),
    _healthy(
        "a model that warns",
        code="import warnings\nwarnings.warn('Killed')\n" + ADDING_MODEL.format(constant=1),
    ),
    _healthy(
        "a model that prints",
        code="print('INFO retry after ThrottlingException (503)')\n" + _ADDING,
    ),
    _variable("LOG_VERBOSE", "true"),
    _variable("LOG_INFO", "false"),
    _variable("SHM_DEFAULT_BYTE_SIZE", "1048576"),
    _variable("THREAD_COUNT", "2"),
    _variable("ADDITIONAL_ARGS", "--exit-timeout-secs=5"),
    Provocation(
        "", "ensemble", adding_ensemble("m", 1, 2), {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "m"}
    ),
    Provocation(
        "",
        "two models",
        {**below("m", adding_model(1)), **below("other", adding_model(2))},
        {
            "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "m",
            "SAGEMAKER_TRITON_ADDITIONAL_ARGS": "--load-model=other",
        },
    ),
]


def serve(container: Provocation, folder: Path) -> Path:
    """Start and stop the container; returns the server's log."""
    archive = write_archive(folder / "model.tar.gz", container.files)
    spec = ContainerSpec("m", "", "s3://bucket/m.tar.gz", container.environment, archive)
    server = ServerThatKeepsItsLog("Endpoint/AllTraffic", spec, server_settings(), 60.0)
    server.kept_log = folder / "server.log"

    async def run() -> None:
        await server.start()
        await server.stop()

    asyncio.run(run())
    return server.kept_log
