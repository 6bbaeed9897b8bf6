"""Containers that fail to start on the real server,
with the entry of the catalogue that names the cause.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from local_assembly import PYTHON_CONFIG, below, write_archive

from constructs_triton_core.errors import LocalEndpointError
from constructs_triton_tools.local.server.host_features import (
    has_private_addresses,
    has_private_mounts,
    why_no_private_mounts,
)
from constructs_triton_tools.local.server.installation import find_installation, inspect_python
from constructs_triton_tools.local.server.server import ServerSettings, TritonServer
from constructs_triton_tools.local.sources.specs import ContainerSpec

_MODEL = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([]) for each in requests]
"""
_ENSEMBLE = """
platform: "ensemble"
max_batch_size: 0
input [ {{ name: "X" data_type: TYPE_FP32 dims: [ -1 ] }} ]
output [ {{ name: "Z" data_type: {type} dims: [ -1 ] }} ]
{more}
ensemble_scheduling {{ step {{ model_name: "{step}" model_version: {version}
  input_map {{ key: "X" value: "X" }} output_map {{ key: "{output}" value: "Z" }} }} }}
"""
_AT_START = "class TritonPythonModel:\n    def initialize(self, args):\n        {}\n"


@dataclass(frozen=True, slots=True)
class Provocation:
    """One failure: the entry that names its cause, the archive's files,
    and the container's environment.
    """

    id: str
    name: str
    files: Mapping[str, str]
    environment: Mapping[str, str] = field(default_factory=dict)


def _config(id: str, name: str, config: str, **files: str) -> Provocation:
    """A Python model with this configuration."""
    return Provocation(
        id, name, below("m", {"config.pbtxt": config, "1/model.py": _MODEL, **files})
    )


def _added(id: str, name: str, more: str) -> Provocation:
    """A correct Python model, with further lines in its configuration."""
    return _config(id, name, PYTHON_CONFIG + more)


def _code(id: str, name: str, code: str) -> Provocation:
    """A Python model with this code."""
    return Provocation(id, name, below("m", {"config.pbtxt": PYTHON_CONFIG, "1/model.py": code}))


def _variable(id: str, name: str, value: str) -> Provocation:
    """A correct Python model in a container with one more variable."""
    files = below("m", {"config.pbtxt": PYTHON_CONFIG, "1/model.py": _MODEL})
    return Provocation(id, f"{name}={value}", files, {f"SAGEMAKER_TRITON_{name}": value})


def _ensemble(
    id: str,
    name: str,
    *,
    step: str = "part",
    output: str = "Y",
    version: int = -1,
    more: str = "",
    **values: str,
) -> Provocation:
    """An ensemble of one model, which is in the same archive."""
    type_ = values.get("type", "TYPE_FP32")
    config = _ENSEMBLE.format(step=step, output=output, version=version, more=more, type=type_)
    part = below("part", {"config.pbtxt": PYTHON_CONFIG, "1/model.py": _MODEL})
    files = {**part, "m/config.pbtxt": config, "m/1/.keep": ""}
    return Provocation(id, name, files, {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "m"})


_BATCHING = PYTHON_CONFIG.replace("max_batch_size: 0", "max_batch_size: 4")
_EXECUTION_ENV = 'parameters {{ key: "EXECUTION_ENV_PATH" value {{ string_value: "{}" }} }}'
_TREE = {"config.pbtxt": PYTHON_CONFIG, "1/model.py": _MODEL}
#: The container's start script refuses these before the server starts.
REFUSED_BY_SCRIPT = [
    Provocation("serve-config-at-root", "packed from inside the folder", _TREE),
    Provocation("serve-no-model", "only a file", {"readme.txt": "no model"}),
    Provocation("serve-several-models", "two models", {**below("a", _TREE), **below("b", _TREE)}),
    _variable("serve-default-absent", "DEFAULT_MODEL_NAME", "other"),
    _variable("serve-inference-type", "INFERENCE_TYPE", "predict"),
]
PROVOCATIONS = [
    *REFUSED_BY_SCRIPT,
    _variable("serve-bad-option", "ADDITIONAL_ARGS", "--no-such-option"),
    _variable("shm-not-a-number", "SHM_DEFAULT_BYTE_SIZE", "large"),
    _variable("shm-too-small", "SHM_DEFAULT_BYTE_SIZE", "16M"),
    _variable("shm-too-small", "SHM_DEFAULT_BYTE_SIZE", "1000"),
    _code(
        "py-module-misspelled", "misspelled module", "import triton_python_backend_util\n" + _MODEL
    ),
    _code("py-module-missing", "missing package", "import no_such_package\n" + _MODEL),
    _code("py-syntax", "invalid Python", "class TritonPythonModel(:\n"),
    _code("py-no-class", "another class", "class Model:\n    pass\n"),
    _code(
        "py-initialize",
        "initialize raises",
        _MODEL + "    def initialize(self, args):\n        raise ValueError('nope')\n",
    ),
    _code("py-autocomplete", "importing raises", "raise RuntimeError('at import')\n" + _MODEL),
    _code("py-stub-unhealthy", "process exits", "import os\n" + _AT_START.format("os._exit(3)")),
    _code("host-memory-error", "memory", _AT_START.format("raise MemoryError('no memory')")),
    _config("text-proto", "unknown field", PYTHON_CONFIG + "max_batchsize: 4\n"),
    _config("text-proto", "missing bracket", PYTHON_CONFIG + "input [\n"),
    _config("platform-unknown", "python as platform", PYTHON_CONFIG.replace("backend", "platform")),
    _added("name-differs", "another name", 'name: "other"\n'),
    Provocation(
        "no-version",
        "no version folder",
        below("m", {"config.pbtxt": PYTHON_CONFIG, "model.py": _MODEL}),
    ),
    Provocation(
        "no-version",
        "version v1",
        below("m", {"config.pbtxt": PYTHON_CONFIG, "v1/model.py": _MODEL}),
    ),
    _config("io-data-type", "no data type", PYTHON_CONFIG.replace("data_type: TYPE_FP32", "", 1)),
    _config("io-dims", "dim 0", PYTHON_CONFIG.replace("[ -1 ]", "[ 0 ]", 1)),
    _config(
        "preferred-batch",
        "preferred above maximum",
        _BATCHING + "dynamic_batching { preferred_batch_size: [ 8 ] }",
    ),
    _config(
        "reshape",
        "reshape",
        PYTHON_CONFIG.replace("dims: [ -1 ]", "dims: [ 4 ] reshape { shape: [ 3 ] }", 1),
    ),
    _added(
        "sequence-control",
        "control without a name",
        "sequence_batching { control_input { control {"
        " kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } } }",
    ),
    _added(
        "batch-io",
        "batch output",
        'batch_output { target_name: "NOPE" kind: '
        'BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "X" }',
    ),
    _config(
        "tensorrt-only",
        "shape tensor",
        PYTHON_CONFIG.replace("dims", "is_shape_tensor: true dims", 1),
    ),
    _added(
        "repo-agent-or-op",
        "repository agent",
        'model_repository_agents { agents { name: "nope" } }',
    ),
    _config(
        "file-missing-label",
        "label file",
        PYTHON_CONFIG.replace('"Y"', '"Y" label_filename: "no.txt"'),
    ),
    _added(
        "py-env-absent",
        "no environment",
        _EXECUTION_ENV.format("$$TRITON_MODEL_DIRECTORY/env.tar.gz"),
    ),
    _config(
        "py-env-format",
        "environment is text",
        PYTHON_CONFIG + _EXECUTION_ENV.format("$$TRITON_MODEL_DIRECTORY/env.tar.gz"),
        **{"env.tar.gz": "text"},
    ),
    _ensemble("ens-unavailable", "step is missing", step="absent"),
    _ensemble("ens-step-failed", "version is missing", version=2),
    _ensemble("ens-graph", "tensor is misspelled", output="YY"),
    _ensemble("ens-inconsistent", "data types differ", type="TYPE_INT32"),
    _ensemble("ens-fields", "instance group", more="instance_group { count: 2 }"),
    Provocation(
        "backend-undetermined",
        "no backend",
        below("m", {"config.pbtxt": "max_batch_size: 0", "1/weights.bin": "x"}),
    ),
]


class ServerThatKeepsItsLog(TritonServer):
    """Copies the log before the run's folder is deleted."""

    kept_log: Path

    async def stop(self) -> None:
        if self.log.exists():
            shutil.copy(self.log, self.kept_log)
        await super().stop()


def provoke(provocation: Provocation, folder: Path) -> tuple[str, Path]:
    """Start the container; returns the error's message and the server's log."""
    archive = write_archive(folder / "model.tar.gz", provocation.files)
    spec = ContainerSpec("m", "", "s3://bucket/m.tar.gz", provocation.environment, archive)
    server = ServerThatKeepsItsLog("Endpoint/AllTraffic", spec, server_settings(), 60.0)
    server.kept_log = folder / "server.log"
    with pytest.raises(LocalEndpointError) as failed:
        asyncio.run(server.start())
    message = str(failed.value)
    if (
        not server.kept_log.exists()
    ):  # the start script refused it; in AWS it prints its message to the log
        server.kept_log.write_text(message[message.index("ERROR") :])
    return message, server.kept_log


def server_settings() -> ServerSettings:
    """The settings of servers on this machine."""
    installation, python = find_installation(None), inspect_python()
    needed = [installation.executable, python.executable]
    return ServerSettings(
        installation,
        python,
        lambda _: None,
        has_private_mounts=has_private_mounts(
            needed, lambda _: None, why_no_private_mounts(is_wanted=True)
        ),
        has_private_addresses=has_private_addresses(lambda _: None, allows_open_ports=True),
    )
