"""Fits the unpacked copy of a model repository to this machine.

GPU instance groups run on the CPU, and no group has more instances than the machine has CPUs. A
stand-in has one instance by default, because each is a process with its own copy of the model.

Only the copy changes, never the archive. A ``config.pbtxt`` that cannot be parsed is left
unchanged, so that the server rejects it with its own message.

Finds models for which the bundled server would wait forever, before it loads them.

A server that hangs writes no message, and in a multi-model container it blocks every other load.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from constructs_triton_core.errors import ContainerExitError, LocalEndpointError, ModelConfigError
from constructs_triton_core.untrusted.regular_files import read_regular
from constructs_triton_tools.local.server.installation import ModelPython
from constructs_triton_tools.local.stand_ins.environments import replace_environments
from constructs_triton_tools.local.stand_ins.stand_ins import StandIns
from triton_model_check.model.backends import infer_backend
from triton_model_check.model.folder import CONFIG_FILE, ModelFolder
from triton_model_check.model.packed_environment import packed_python
from triton_model_check.model_config.target import Target
from triton_model_check.model_config.text import format_model_config, parse_model_config
from triton_model_check.model_repository import ModelRepository

_ONE_INSTANCE = "instance_group [ { count: 1 kind: KIND_CPU } ]\n"
#: Checks whose errors make triton 24.10 wait forever for a Python stub.
_HANGS = frozenset({"python-model-file", "python-name-shell"})
_ENVIRONMENT = "EXECUTION_ENV_PATH"
_MODEL_DIRECTORY = "$$TRITON_MODEL_DIRECTORY"


def prepare_models(
    repository: Path, report: Callable[[str], None], *, is_exact: bool = False
) -> dict[str, Any]:
    """Change what this machine cannot run, and return each model's configuration by folder name.

    A ``config.pbtxt`` at the root, which a multi-model archive may have, is named ``""``.
    ``report`` prints which models were changed and how. On a machine with a GPU, GPU instance
    groups stay unchanged.
    """
    configs = dict(_read_configs(repository))
    cpus = os.cpu_count() or 1
    relaxed = [] if _has_gpu() else [name for name, config in configs.items() if _relax(config)]
    limited = [name for name, config in configs.items() if _limit(config, cpus)]
    if is_exact:
        _refuse_changes(relaxed, limited, cpus)
    for name in {*relaxed, *limited}:
        (repository / name / "config.pbtxt").write_text(
            format_model_config(configs[name]), encoding="utf-8"
        )
    if relaxed:
        report(f"this machine has no GPU: GPU instance groups run on the CPU: {_names(relaxed)}")
    if limited:
        report(
            f"this machine has {cpus} CPUs: instance groups run "
            f"at most {cpus} instances: {_names(limited)}"
        )
    return configs


def _refuse_changes(relaxed: Sequence[str], limited: Sequence[str], cpus: int) -> None:
    if relaxed:
        raise LocalEndpointError(
            f"{_names(relaxed)}: has instance groups on GPUs, and this machine has none; set kind: "
            "KIND_CPU in config.pbtxt, or remove --exact"
        )
    if limited:
        raise LocalEndpointError(
            f"{_names(limited)}: has more instances than the {cpus} CPUs of this machine; set "
            f"count to at most {cpus} in config.pbtxt, or remove --exact"
        )


def _names(models: Iterable[str]) -> str:
    """Return the names of models for a message; the model of an archive itself has none."""
    return ", ".join(sorted(name or "the model at the archive's root" for name in models))


def fit_models(
    repository: Path,
    default_model: str,
    installed: frozenset[str],
    stand_ins: StandIns | None,
    report: Callable[[str], None],
    *,
    is_exact: bool = False,
) -> int:
    """Fit unpacked models to this machine; return how many processes Python models and stand-ins
    have.

    ``installed`` are the backends of the server.
    """
    if stand_ins is not None:
        stand_ins.put_in_place(models_to_load(repository, default_model), report)
    prepare_models(repository, report, is_exact=is_exact)
    models = models_to_load(repository, default_model)
    replaced = require_backends(models, installed, stand_ins, report)
    return count_python_instances(models, replaced)


def models_to_load(repository: Path, default_model: str) -> list[ModelFolder]:
    """Return the default model with, for an ensemble, all its steps.

    An empty name means all models.
    """
    found = ModelRepository.from_directory(repository)
    if default_model:
        if default_model not in found.models:
            return []
        return [found.models[name] for name in found.closure(default_model)]
    root = [] if found.root_model is None else [found.root_model]
    return [*root, *found.models.values()]


def require_backends(
    models: Iterable[ModelFolder],
    installed: frozenset[str],
    stand_ins: StandIns | None,
    report: Callable[[str], None],
) -> list[ModelFolder]:
    """Return the models that stand-ins replace; each other model's backend is installed.

    ``report`` prints the stand-in of each model. Without ``stand_ins`` none is used.

    Raises:
        LocalEndpointError: a backend is not installed and has no stand-in.
        MissingDependencyError: a stand-in's package is not installed.
    """
    replaced = []
    for model in models:
        backend = "" if model.is_ensemble else infer_backend(model).backend
        if not backend or backend in installed:
            continue
        if stand_ins is None or not stand_ins.knows(backend):
            raise LocalEndpointError(_missing(model.name, backend, installed, stand_ins))
        stand_ins.require(model, backend, report)
        replaced.append(model)
        if not (model.config and model.config.instance_group):
            _set_one_instance(model)
    return replaced


def _missing(
    model: str, backend: str, installed: frozenset[str], stand_ins: StandIns | None
) -> str:
    has_also = ""
    alternative = "remove --no-stand-ins, write the model for the Python backend"
    if stand_ins is not None:
        has_also = f" and stand-ins for {', '.join(stand_ins.backends())}"
        alternative = (
            f"run an ONNX file or a Python model in its place with --stand-in {model}=PATH"
        )
    return (
        f"{model}: needs the backend {backend!r}, but this Triton server has only "
        f"{', '.join(sorted(installed))}{has_also}; "
        f"{alternative}, set --tritonserver to a server that has it (NVIDIA's Triton image has "
        "/opt/tritonserver/bin/tritonserver), "
        "or run an endpoint without this model with --endpoint NAME"
    )


def _set_one_instance(model: ModelFolder) -> None:
    """Write the default of most backends. That of ONNX models is two instances."""
    path = model.directory / CONFIG_FILE
    if model.config is not None:
        path.write_text(f"{format_model_config(model.config)}{_ONE_INSTANCE}", encoding="utf-8")
    elif not model.has_config and model.path != ".":
        path.write_text(_ONE_INSTANCE, encoding="ascii")


def count_python_instances(models: Iterable[ModelFolder], replaced: Sequence[ModelFolder]) -> int:
    """Return how many processes the Python models and the stand-ins have at least.

    A group without a count has one.
    """
    names = {model.name for model in replaced}
    chosen = [
        model for model in models if model.name in names or infer_backend(model).backend == "python"
    ]
    return sum(_count(model.config) for model in chosen)


def _count(config: Any | None) -> int:
    """Return the number of instances of a model: one for each group without a count."""
    if config is None:
        return 1
    count = sum(max(1, int(group.count)) for group in config.instance_group)
    return max(1, count)


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
    groups = [
        group for group in config.instance_group if group.gpus or group.kind == group.KIND_GPU
    ]
    for group in groups:
        group.ClearField("gpus")
        group.ClearField("secondary_devices")
        group.kind = group.KIND_CPU
    return bool(groups)


def _limit(config: Any, cpus: int) -> bool:
    """Lower the counts of CPU groups to the CPUs of the machine; return whether there were any."""
    groups = [
        group
        for group in config.instance_group
        if group.kind != group.KIND_GPU and group.count > cpus
    ]
    for group in groups:
        group.count = cpus
    return bool(groups)


def make_loadable(
    repository: Path, target: Target, python: ModelPython, report: Callable[[str], None]
) -> None:
    """Build environments of ``constructs-triton env build`` for this Python,
    and refuse what would hang.
    """
    replace_environments(repository, python.executable, report)
    refuse_known_hangs(repository, target, python.version)


def refuse_known_hangs(repository: Path, target: Target, python: tuple[int, int]) -> None:
    """Check a repository for models that would hang the server.

    ``python`` is the version that the stub embeds. A packed environment must have the same version.
    """
    report = ModelRepository.from_directory(repository).check(target, is_packed=False)
    found = [finding.one_line for finding in report.findings if finding.code in _HANGS]
    found += _foreign_environments(repository, "{}.{}".format(*python))
    if found:
        raise ContainerExitError("\n".join(found))


def _foreign_environments(repository: Path, minor: str) -> Iterator[str]:
    for path in sorted([*repository.glob("config.pbtxt"), *repository.glob("*/config.pbtxt")]):
        try:
            parameters = parse_model_config(read_regular(path), str(path)).parameters
        except (OSError, ModelConfigError):
            continue
        if _ENVIRONMENT not in parameters:
            continue
        given = parameters[_ENVIRONMENT].string_value
        packed = packed_python(given.replace(_MODEL_DIRECTORY, str(path.parent)))
        if packed not in (None, minor):
            yield (
                f"{path.relative_to(repository)}: {_ENVIRONMENT} contains Python {packed}, but the "
                f"server runs Python {minor}, got {given!r}; "
                f"set --python to an environment of Python {packed}"
            )
