"""The stand-in for ONNX models and the real backend: verdict and completed configuration of each
case.

The stand-in is called as the Python backend calls it, with the configuration that the server's core
passes. `tests/acceptance/test_onnx_stand_in_server.py` asks the server itself about some of them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fake_backend
import pytest
from core_verdicts import REJECTED_BY_THE_CORE
from google.protobuf import json_format

from triton_model_check.checks.model_under_check import ModelUnderCheck, RepositoryContext
from triton_model_check.model_config.schema import new_model_config
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository

fake_backend.install()
from constructs_triton_tools.local.stand_ins.served.onnxruntime_model import TritonPythonModel  # noqa: E402

ORACLE = Path(__file__).parents[3] / "check" / "tests" / "contract" / "oracle_onnx"
VERDICTS: dict[str, dict[str, Any]] = json.loads(
    (ORACLE / "verdicts.json").read_text(encoding="utf-8")
)
DECIDED = sorted(name for name, case in VERDICTS.items() if case["verdict"] != "unverifiable")

NEWER_RUNTIME = frozenset({"bad_opset_22", "bad_opset_23_auto"})
"""ONNX Runtime 1.19 does not know these operator sets; the installed one does."""
OPTION = "ok_auto_default_mbs_16"
"""An option of the server sets the default of max_batch_size, which stand-ins do not see."""


def _models(path: Path) -> list[ModelUnderCheck]:
    """The ONNX models of a case."""
    repository = ModelRepository.from_directory(path)
    folders = dict(repository.models)
    if repository.root_model is not None:
        folders = {repository.root_model.name: repository.root_model}
    names = frozenset(folders)
    target = Target(gpu_count=0)
    context = RepositoryContext(
        folders, dict.fromkeys(names, False), None, target, names, tuple(names)
    )
    return [model for model in context.models.values() if model.backend == "onnxruntime"]


def _load_all(path: Path) -> tuple[str | None, dict[str, dict[str, Any]]]:
    """Load each version of each model; return the first error, and the completed configurations."""
    completed: dict[str, dict[str, Any]] = {}
    for model in _models(path):
        for version in model.versions_to_load:
            config = fake_backend.core_config(model)
            try:
                fake_backend.load(TritonPythonModel(), model.folder, version, config)
            except Exception as error:
                return str(error), completed
            completed.setdefault(model.name, config)  # the newest version comes first
    return None, completed


@pytest.mark.parametrize("name", DECIDED)
def test_verdict_equals_the_backends(cases: Path, name: str) -> None:
    """The stand-in loads what the backend loads, and rejects what the backend rejects."""
    error, _ = _load_all(cases / name)
    is_left_to_others = name in REJECTED_BY_THE_CORE | NEWER_RUNTIME
    assert ("loads" if error is None else "rejected") == (
        "loads" if is_left_to_others else VERDICTS[name]["verdict"]
    ), (error, VERDICTS[name]["error"])


def _expected(name: str) -> dict[str, dict[str, Any]]:
    case = VERDICTS[name]
    if case["verdict"] != "loads" or name == OPTION:
        return {}
    configs = {case.get("default_model", "m"): case["config"], **(case.get("steps") or {})}
    return {
        model: each
        for model, each in configs.items()
        if each and each.get("backend") == "onnxruntime"
    }


COMPLETED = ("max_batch_size", "input", "output", "dynamic_batching")
"""What the backend completes. Everything else is completed by the server's core."""


def _completed_part(config: dict[str, Any]) -> dict[str, Any]:
    message = json_format.ParseDict(config, new_model_config(), ignore_unknown_fields=True)
    message.dynamic_batching.ClearField("preferred_batch_size")  # set by the core afterwards
    values = json_format.MessageToDict(message, preserving_proto_field_name=True)
    for side in ("input", "output"):
        values[side] = sorted(values.get(side, []), key=lambda tensor: tensor["name"])
    return {key: values.get(key) for key in COMPLETED} | {
        "dynamic_batching": config.get("dynamic_batching") is not None
    }


@pytest.mark.parametrize("name", [name for name in DECIDED if _expected(name)])
def test_completed_configuration_equals_the_backends(cases: Path, name: str) -> None:
    """``max_batch_size``, tensors and dynamic batching are completed as by the backend."""
    error, completed = _load_all(cases / name)
    assert error is None
    for model, expected in _expected(name).items():
        found = (
            completed.get(model) or completed[name]
        )  # a model at the root is named by its folder
        assert _completed_part(found) == _completed_part(expected)


SAME_WORDS = {
    "bad_all_one_broken": "onnx runtime error 7: ",
    "bad_auto_mbs_fixed": (
        "model does not support batching while non-zero max_batch_size is specified"
    ),
    "bad_bool_as_uint8": (
        "configuration expects datatype TYPE_UINT8 for input 'X', model provides TYPE_BOOL"
    ),
    "bad_output_misspelt": "unexpected inference output",
    "bad_ragged_shape": (
        "configuration expects model provides input with shape [-1] for ragged input 'X'"
    ),
    "bad_symlink_dangling": "failed to stat file",
    "bad_sequence_output": "Unsupported ONNX Type",
    "bad_ea_cpu_unknown": "unknown Execution Accelerator 'nonsense' is requested",
}


@pytest.mark.parametrize("name", sorted(SAME_WORDS))
def test_message_has_the_words_of_the_backend(cases: Path, name: str) -> None:
    """A search for the backend's message finds the stand-in's."""
    assert SAME_WORDS[name] in VERDICTS[name]["error"]
    assert SAME_WORDS[name] in str(_load_all(cases / name)[0])
