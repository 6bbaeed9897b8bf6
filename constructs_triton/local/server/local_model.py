"""Fits the unpacked copy of a model repository to this machine.

GPU instance groups run on the CPU, and no group has more instances than the machine has CPUs.

Only the copy changes, never the archive. A ``config.pbtxt`` that cannot be parsed is left unchanged, so that
the server rejects it with its own message.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from constructs_triton.errors import LocalEndpointError, ModelConfigError
from constructs_triton.model_config.text import format_model_config, parse_model_config
from constructs_triton.regular_files import read_regular

__all__ = ["count_python_instances", "prepare_models", "require_backends"]

#: The backend that the server infers from ``platform`` (triton core AutoCompleteBackendFields).
_PLATFORM_BACKENDS = {
    "onnxruntime_onnx": "onnxruntime",
    "pytorch_libtorch": "pytorch",
    "tensorflow_graphdef": "tensorflow",
    "tensorflow_savedmodel": "tensorflow",
    "tensorrt_plan": "tensorrt",
}


def prepare_models(repository: Path, report: Callable[[str], None]) -> dict[str, Any]:
    """Change what this machine cannot run, and return each model's configuration by folder name.

    A ``config.pbtxt`` at the root, which a multi-model archive may have, is named ``""``. ``report`` prints
    which models were changed and how. On a machine with a GPU, GPU instance groups stay unchanged.
    """
    configs = dict(_read_configs(repository))
    cpus = os.cpu_count() or 1
    relaxed = [] if _has_gpu() else [name for name, config in configs.items() if _relax(config)]
    limited = [name for name, config in configs.items() if _limit(config, cpus)]
    for name in {*relaxed, *limited}:
        (repository / name / "config.pbtxt").write_text(format_model_config(configs[name]), encoding="utf-8")
    if relaxed:
        report(f"this machine has no GPU: GPU instance groups run on the CPU: {_names(relaxed)}")
    if limited:
        report(
            f"this machine has {cpus} CPUs: instance groups run at most {cpus} instances: {_names(limited)}"
        )
    return configs


def _names(models: Iterable[str]) -> str:
    return ", ".join(sorted(name or "the model at the archive's root" for name in models))


def require_backends(configs: Mapping[str, Any], default_model: str, installed: frozenset[str]) -> None:
    """Check that the server has the backend of a model and, for an ensemble, of its steps.

    An empty ``default_model`` means all models.

    Raises:
        LocalEndpointError: a backend is not installed.
    """
    for name in sorted(_closure(configs, default_model) if default_model else configs):
        backend = _backend(configs[name]) if name in configs else ""
        if backend and backend not in installed:
            raise LocalEndpointError(
                f"{name}: needs the backend {backend!r}, but this Triton server has only "
                f"{', '.join(sorted(installed))}; set --tritonserver to a server that has it (NVIDIA's "
                "Triton image has /opt/tritonserver/bin/tritonserver), run an endpoint without this model "
                "with --endpoint NAME, or write the model for the Python backend"
            )


def count_python_instances(configs: Mapping[str, Any], default_model: str) -> int:
    """Return how many processes the Python models have at least; a group without a count has one."""
    names = _closure(configs, default_model) if default_model else set(configs)
    chosen = [configs[name] for name in names if name in configs and configs[name].backend == "python"]
    return sum(max(1, sum(max(1, group.count) for group in config.instance_group)) for config in chosen)


def _has_gpu() -> bool:
    return shutil.which("nvidia-smi") is not None


def _read_configs(repository: Path) -> Iterator[tuple[str, Any]]:
    for path in sorted([*repository.glob("config.pbtxt"), *repository.glob("*/config.pbtxt")]):
        try:
            config = parse_model_config(read_regular(path), str(path))
        except (OSError, ModelConfigError):
            continue
        yield ("" if path.parent == repository else path.parent.name), config


def _relax(config: Any) -> bool:
    """Move GPU instance groups to the CPU; return whether there were any."""
    groups = [group for group in config.instance_group if group.gpus or group.kind == group.KIND_GPU]
    for group in groups:
        group.ClearField("gpus")
        group.ClearField("secondary_devices")
        group.kind = group.KIND_CPU
    return bool(groups)


def _limit(config: Any, cpus: int) -> bool:
    """Lower the counts of CPU groups to the CPUs of the machine; return whether there were any."""
    groups = [group for group in config.instance_group if group.kind != group.KIND_GPU and group.count > cpus]
    for group in groups:
        group.count = cpus
    return bool(groups)


def _backend(config: Any) -> str:
    return str(config.backend) or _PLATFORM_BACKENDS.get(config.platform, "")


def _closure(configs: Mapping[str, Any], name: str) -> set[str]:
    """Return the model and, for ensembles, all their steps."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            steps = configs[name].ensemble_scheduling.step if name in configs else ()
            waiting += [step.model_name for step in steps]
    return found
