"""Our verdict and the real server's on ONNX models, with and without the ``onnx`` package.

``oracle_onnx/cases.tar.gz`` contains one repository for each case, ``oracle_onnx/verdicts.json``
the answer of the server (release 24.10 with ONNX Runtime 1.19.2, without a GPU) and the
configuration that it completed.
"""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import onnxruntime
import pytest
from check_examples.onnx_models import model, node, tensor
from google.protobuf import json_format
from onnx import TensorProto, external_data_helper, helper

from triton_model_check.checks.loaded_config import complete
from triton_model_check.checks.report import Report
from triton_model_check.model.folder import ModelFolder
from triton_model_check.model_config.schema import new_model_config
from triton_model_check.model_config.target import Platform, Target
from triton_model_check.model_files import describe, onnx_shapes
from triton_model_check.model_repository import ModelRepository

ORACLE = Path(__file__).parent / "oracle_onnx"
VERDICTS: dict[str, dict[str, Any]] = json.loads(
    (ORACLE / "verdicts.json").read_text(encoding="utf-8")
)
DECIDED = sorted(name for name, case in VERDICTS.items() if case["verdict"] != "unverifiable")

MISSED = {
    "bad_auto_disabled_none": "an option of the server disables completion",
}
"""What the server rejects and we do not, even with the ``onnx`` package."""

NEEDS_INFERENCE = {
    "bad_if_types_differ": "the types of the branches are inferred",
    "bad_if_without_else": "the attributes that an operator requires are in the onnx package",
    "bad_inner_type_contradicts": "the type of an inner tensor is inferred",
    "bad_kernel_erf_fp64": "the definition of Erf is in the onnx package",
    "bad_kernel_gelu_fp64": "the operators that replace Gelu are in the onnx package",
    "bad_kernel_relu_1": "the definition of Relu is in the onnx package",
    "bad_mbs0_output_fixed": (
        "the model's output shape is inferred, so it is not known to be [-1, 4]"
    ),
    "bad_op_type_not_allowed": "the types that an operator accepts are in the onnx package",
    "bad_output_fixed_for_wild": "the output shape is inferred",
    "bad_seq_fixed_everywhere": "the output shape is inferred",
    "odd_declared_contradicts": "the declared shape is wrong, which only inference shows",
    "odd_declared_rank_contradicts": "the declared rank is wrong, which only inference shows",
}
"""What the server rejects and we do not without the ``onnx`` package."""

TOO_STRICT = {"ok_optimized_rank_softmax": "the declared rank is wrong, which only inference shows"}
"""What the server loads and we reject, without the ``onnx`` package."""

SAME_WORDS = {
    "bad_html": "Protobuf parsing failed",
    "bad_auto_mbs_fixed": (
        "model does not support batching while non-zero max_batch_size is specified"
    ),
    "bad_auto_partial_input_missing": "configuration expects 1 inputs, model provides 2",
    "bad_bad_attribute": "Unrecognized attribute: nonsense for operator Re",
    "bad_bool_as_uint8": "configuration expects datatype TYPE_UINT8 for input",
    "bad_cycle": "the graph is not acyclic",
    "bad_ea_cpu_unknown": "unknown Execution Accelerator",
    "bad_empty_file": "ModelProto does not have a graph",
    "bad_file_twice": "Duplicate definition",
    "bad_full_dynamic_no_mbs_dims": "the model expects 2 dimensions",
    "bad_ir_absent": "Missing model IR version",
    "bad_kernel_erf_fp64": "Could not find an implementation for Erf(13)",
    "bad_ms_unknown": "com.microsoft:NoSuchThing",
    "bad_one_input_without_batch": (
        "for the model to support batching the shape should have at least 1"
    ),
    "bad_onnx_named_ort": "ORT model verification failed",
    "bad_optional_mbs": "is not supported for models that support batching",
    "bad_output_type_undefined": "Invalid tensor data type 0",
    "bad_output_misspelt": "unexpected inference output",
    "bad_param_mem_pattern_word": "failed to convert",
    "bad_ragged_shape": (
        "configuration expects model provides input with shape [-1] for ragged input"
    ),
    "bad_scalar_two": "should only provide 1 in",
    "bad_sequence_output": "Unsupported ONNX Type",
    "bad_symlink_dangling": "failed to stat file",
    "bad_unknown_op": "No Op registered for Frobnicate with domain_version of 13",
    "odd_no_opset": "Missing opset in the model",
}
"""Words that the server's message and ours have in common,
so that a search for one finds the other.
"""

OTHERWISE = {"ok_auto_default_mbs_16": "an option of the server sets the default of max_batch_size"}
"""What the server completes otherwise."""

SAID_TO_LOAD = {
    "odd_param_shrinkage_gpu": "no check compares ONNX Runtime's memory settings with the GPUs"
}
"""What the real server loads and cannot serve, and no check reports."""


@pytest.fixture
def without_onnx(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the ``onnx`` package."""
    monkeypatch.setattr(onnx_shapes, "_is_onnx_installed", lambda: False)


def _target(name: str) -> Target:
    case = VERDICTS[name]
    platform: Platform = "sagemaker" if case["mode"] == "sme" else "sagemaker-multi-model"
    return Target(
        platform, gpu_count=0, default_model=case.get("default_model"), image_version="24.10"
    )


UNKNOWN = {
    **dict.fromkeys(
        (
            *("ok_graph_unsorted", "ok_inner_dim_breaks_add", "ok_inner_dim_contradicts"),
            *("ok_inner_rank_contradicts", "ok_optimized_rank", "ok_optimized_rank_softmax"),
            "ok_reshape_rank_contradicts",
        ),
        "the shapes contradict each other, and the runtime decides which one counts",
    ),
    "bad_kernel_gelu_fp64": "the operators that replace Gelu have no kernel, not Gelu itself",
    "ok_ext_length_zero": "its external data may be a shape",
    "ok_init_sparse": "onnx does not infer shapes from sparse tensors",
    "ok_ms_domain": "onnx does not have the operators of com.microsoft",
    "ok_ort_format": "files of ONNX Runtime's own format are not read",
}
"""What only the runtime decides, and of which we say that it is not known."""


def _check(cases: Path, name: str) -> Report:
    return ModelRepository.from_directory(cases / name).check(_target(name), is_packed=False)


def _verdict(name: str) -> str:
    """The real server's verdict: a case that it loads may still answer no request."""
    is_unusable = VERDICTS[name].get("unusable") and name not in SAID_TO_LOAD
    return "cannot-be-served" if is_unusable else str(VERDICTS[name]["verdict"])


def test_archive_and_verdicts_hold_the_same_cases(cases: Path) -> None:
    """Every case has a verdict, and every verdict has a case."""
    assert {path.name for path in cases.iterdir()} == set(VERDICTS)


@pytest.mark.parametrize("name", DECIDED)
def test_verdict_equals_the_servers(cases: Path, name: str) -> None:
    """With the onnx package, only the listed cases have another verdict, or an unknown one."""
    report = _check(cases, name)
    expected = "loads" if name in MISSED else "unknown" if name in UNKNOWN else _verdict(name)
    assert report.verdict == expected, (VERDICTS[name]["error"], report)


@pytest.mark.usefixtures("without_onnx")
@pytest.mark.parametrize("name", DECIDED)
def test_verdict_without_the_onnx_package(cases: Path, name: str) -> None:
    """Without the onnx package, some more cases are not rejected, and one that loads is rejected.
    What inference would say is unknown.
    """
    report = _check(cases, name)
    others = {
        **dict.fromkeys(MISSED | NEEDS_INFERENCE, "loads"),
        **dict.fromkeys(TOO_STRICT, "rejected"),
    }
    expected = others.get(name, _verdict(name))
    assert report.verdict == expected or (expected, report.verdict) == ("loads", "unknown"), report


def test_agreement_is_as_high_as_promised() -> None:
    """At least 99 percent of the cases agree with the onnx package, and 93 percent without it."""
    assert 1 - len(MISSED) / len(DECIDED) >= 0.99
    assert 1 - len(MISSED | NEEDS_INFERENCE | TOO_STRICT) / len(DECIDED) >= 0.93


def test_misses_are_cases_that_the_server_rejects() -> None:
    """Each miss is rejected by the server, so the lists cannot hide a false error."""
    assert {VERDICTS[name]["verdict"] for name in MISSED | NEEDS_INFERENCE} == {"rejected"}


@pytest.mark.parametrize(
    "name", [name for name in DECIDED if VERDICTS[name]["verdict"] == "rejected"]
)
def test_refusal_has_a_place(cases: Path, name: str) -> None:
    """Each error names a path that exists."""
    for error in _check(cases, name).errors:
        path = cases / name / error.path
        assert error.path == "." or path.is_symlink() or path.exists()


@pytest.mark.parametrize("name", sorted(SAME_WORDS))
def test_message_has_the_words_of_the_server(cases: Path, name: str) -> None:
    """A search for the server's message finds ours."""
    words = SAME_WORDS[name]
    assert words in VERDICTS[name]["error"]
    assert any(words in error.message for error in _check(cases, name).errors)


# --- ONNX Runtime itself --------------------------------------------------------------------------

X, Y = [tensor("X")], [tensor("Y")]
RELU = [node("Relu", ["X"], ["Y"])]
DOUBLE = [tensor("Y", TensorProto.DOUBLE)]
AXES = helper.make_node("Squeeze", ["X"], ["Y"], axes=[1])
MODELS = {
    "declared type differs": (model("", RELU, X, DOUBLE), False),
    "operator set of ai.onnx not imported": (
        model("", RELU, X, Y, opsets={"com.microsoft": 1}),
        True,
    ),
    "operator set of com.microsoft not imported": (
        model("", [node("Gelu", ["X"], ["Y"], "com.microsoft")], X, Y),
        True,
    ),
    "old attribute, operator set not imported": (
        model("", [AXES], X, [tensor("Y", dims=("b",))], opsets={"ai.onnx.ml": 3}),
        False,
    ),
    "unknown domain imported": (model("", RELU, X, Y, opsets={"": 13, "my.operators": 1}), True),
    "two names of one domain": (model("", RELU, X, Y, opsets={"ai.onnx": 13, "": 12}), True),
}


@pytest.mark.parametrize("name", sorted(MODELS))
def test_model_is_judged_as_by_onnx_runtime(name: str, tmp_path: Path) -> None:
    """ONNX Runtime accepts operator sets that are not imported,
    and rejects a wrong declared type.
    """
    content, loads = MODELS[name]
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    assert (not describe(path).faults) == loads, describe(path).faults
    with nullcontext() if loads else pytest.raises(Exception, match=r"INVALID_GRAPH|Type Error"):
        onnxruntime.InferenceSession(path)


@pytest.mark.parametrize(
    ("location", "version", "faults"),
    [
        ("{folder}/w.bin", "24.10", 0),  # where the model is in the container is not known
        ("/opt/ml/model/m/1/w.bin", "26.01", 0),
        ("{folder}/w.bin", "26.02", 1),
        ("sub/../w.bin", "26.02", 0),
        ("../1/../w.bin", "26.02", 1),
    ],
)
def test_place_of_external_data(location: str, version: str, faults: int, tmp_path: Path) -> None:
    """Up to ONNX Runtime 1.23 external data may be anywhere,
    and an absolute path is not checked.
    """
    weights = helper.make_tensor("W", TensorProto.FLOAT, [4], b"\0" * 16, raw=True)
    external_data_helper.set_external_data(weights, location.format(folder=tmp_path), 0, 16)
    weights.ClearField("raw_data")
    weights.data_location = TensorProto.EXTERNAL
    (tmp_path / "sub").mkdir()
    (tmp_path / "w.bin").write_bytes(b"\0" * 16)
    path = tmp_path / "model.onnx"
    path.write_bytes(model("", [node("Add", ["X", "W"], ["Y"])], X, Y, initializers=[weights]))
    described = describe(path, version)
    assert [fault.code for fault in described.faults] == ["onnx-external-data"] * faults
    assert any("absolute path" in line for line in described.not_checked) == (
        location[0] in "/{" and not faults
    )


# --- completed configurations ---------------------------------------------------------------------


def _expected() -> dict[tuple[str, str], dict[str, Any]]:
    """The completed configuration of each ONNX model, by case and model."""
    found = {}
    for name, case in VERDICTS.items():
        configs = {case.get("default_model"): case["config"], **(case.get("steps") or {})}
        for step, config in configs.items():
            if case["verdict"] == "loads" and config and config.get("backend") == "onnxruntime":
                found[name, step or ""] = config
    return found


EXPECTED = _expected()


def _as_plain(config: Any) -> dict[str, Any]:
    values = json_format.MessageToDict(config, preserving_proto_field_name=True)
    for field in ("input", "output"):
        values.setdefault(field, []).sort(key=lambda tensor: tensor["name"])
    if values["version_policy"] == {"all": {}}:
        values["version_policy"] = {}  # the server's JSON has no empty messages
    return values


@pytest.mark.parametrize(
    ("name", "model"), sorted(key for key in EXPECTED if key[0] not in OTHERWISE)
)
def test_completed_config_equals_the_servers(cases: Path, name: str, model: str) -> None:
    """All fields are completed as by the server; the order of tensors is not fixed."""
    folder = cases / name / model if model else cases / name
    if not model and not (folder / "config.pbtxt").exists():
        (folder,) = folder.iterdir()
    loaded = complete(ModelFolder(EXPECTED[name, model]["name"], folder, "."), _target(name))
    server = json_format.ParseDict(
        EXPECTED[name, model], new_model_config(), ignore_unknown_fields=True
    )
    assert _as_plain(loaded.config) == _as_plain(server)
