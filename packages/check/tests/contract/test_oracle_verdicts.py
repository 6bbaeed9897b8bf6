"""Our verdict and the real server's, on repositories that triton server 2.51 was given to load.

``oracle/cases.tar.gz`` contains one folder for each repository, and ``oracle/verdicts.json`` the
answer of the server (release 24.10, without a GPU). It is an archive because git does not store
empty folders.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from check_examples.places import misplaced

from constructs_triton_core.findings import Verdict
from triton_model_check.checks.report import Report
from triton_model_check.model_config.target import Platform, Target
from triton_model_check.model_repository import ModelRepository

ORACLE = Path(__file__).parent / "oracle"
VERDICTS: dict[str, dict[str, Any]] = json.loads(
    (ORACLE / "verdicts.json").read_text(encoding="utf-8")
)

NEEDS_EXECUTION = {
    "bad_auto_conflict": "auto_complete_config is executed, which images before 22.06 do not do",
    "bad_ens_step_autocomplete_mismatch": (
        "auto_complete_config is executed and gives a step its types"
    ),
    "bad_mme_error": "initialize is executed and raises",
    "bad_mme_memory": "initialize is executed and raises",
    "bad_py_init_raises": "initialize is executed and raises",
}
"""Only executing the model shows these errors; ``check --server`` reports them."""

DUMMY_FILES = ("foreign_onnx_no_io", "foreign_torch_good", "foreign_trt_good")
"""Cases whose model file is a placeholder, because that server had no backend to read it."""

SAME_WORDS = {
    "bad_batch_output_target": "unknown target output name",
    "bad_cache_decoupled": "with 'decoupled' transaction policy",
    "bad_config_at_root_and_dir": "Incorrect directory structure",
    "bad_cpu_with_gpus": "has kind KIND_CPU but specifies one or more GPUs",
    "bad_dim_minus_two": (
        "dimension must be integer >= 1, or -1 to indicate a variable-size dimension"
    ),
    "bad_empty_repo": "No model found in model repository",
    "bad_empty_version_dir": "Python model file not found in",
    "bad_ens_cycle_on_path": "written",
    "bad_ens_dtype_output": "inconsistent data type: ",
    "bad_ens_instance_group": "instance group should not be specified for ensemble",
    "bad_ens_map_key_twice": "is not used",
    "bad_ens_missing_model": "contains models that are not available",
    "bad_ens_no_output_map": "must specify 'output_map' in step",
    "bad_ens_no_scheduling": "ensemble scheduling must be set for ensemble",
    "bad_ens_rank_between": "inconsistent shape: ",
    "bad_ens_tensor_unread": "is unused",
    "bad_ens_unknown_output": "is mapped from non-existing output",
    "bad_ens_written_twice": "can appear in an output map only once",
    "bad_execution_env_absent": "Failed to get the canonical path",
    "bad_gpu_no_gpu": "has kind KIND_GPU but no GPUs are available",
    "bad_no_dims": "must specify 'dims'",
    "bad_no_version_dir": "at least one version must be available",
    "bad_non_linear_io": "Non-linear IO format is only supported for",
    "bad_ordering_priorities": (
        "Only one priority level is allowed when 'preserve_ordering' is true"
    ),
    "bad_policy_specific_absent": "at least one version must be available under the version policy",
    "bad_preferred_nonbatching": "dynamic batching preferred size must be <= max batch size",
    "bad_reshape_wildcards_differ": (
        "has different number of variable-size dimensions for dims and reshape"
    ),
    "bad_seq_corrid_type": "unexpected data type for control CONTROL_SEQUENCE_CORRID",
    "bad_seq_no_values": (
        "sequence batching must specify either 'int32_false_true', 'fp32_false_true' or"
    ),
    "bad_seq_oldest_preferred": "sequence batching preferred batch size must be <= max batch size",
    "bad_seq_start_twice": "sequence batching specifies multiple CONTROL_SEQUENCE_START tensors",
    "bad_shape_tensor": "shape tensors are only supported for TensorRT platform",
    "bad_stray_root_dir": "More than 1 model directory found in model repository",
    "bad_warmup_no_data": "to have input_data_type set",
    "foreign_torch_pair": "unexpected 'platform' and 'backend' pair, got",
}
"""Words that the server's message and ours have in common,
so that a search for one finds the other.
"""

CANNOT_SERVE = {
    name for name, case in VERDICTS.items() if case.get("unusable") or case.get("order_dependent")
}
"""Cases that the server loads and whose requests it refuses, in all or in some file systems."""

DECIDED = sorted(
    name
    for name, case in VERDICTS.items()
    if case["verdict"] != "unverifiable" and name not in NEEDS_EXECUTION
)


def check(cases: Path, name: str) -> Report:
    """Check a case as the server loaded it: on a machine without GPUs, as one archive."""
    case = VERDICTS[name]
    platform: Platform = "sagemaker" if case["mode"] == "sme" else "sagemaker-multi-model"
    target = Target(platform, gpu_count=0, default_model=case.get("default_model"))
    return ModelRepository.from_directory(cases / name).check(target, is_packed=False)


def test_archive_and_verdicts_have_the_same_cases(cases: Path) -> None:
    """Every case has a verdict, and every verdict has a case."""
    assert {path.name for path in cases.iterdir()} == set(VERDICTS)


@pytest.mark.parametrize("name", DECIDED)
def test_verdict_equals_the_servers(cases: Path, name: str) -> None:
    """Our verdict is the server's if the server reached it without executing the model."""
    report = check(cases, name)
    expected = "cannot-be-served" if name in CANNOT_SERVE else VERDICTS[name]["verdict"]
    assert Verdict.of(report.findings) == expected, (VERDICTS[name].get("error"), report.findings)


@pytest.mark.parametrize(
    "name", [name for name in DECIDED if VERDICTS[name]["verdict"] == "rejected"]
)
def test_refusal_is_an_error(cases: Path, name: str) -> None:
    """A repository that the server rejects has at least one error, whose path exists."""
    errors = check(cases, name).errors
    assert errors
    assert all(error.path == "." or (cases / name / error.path).exists() for error in errors)


@pytest.mark.parametrize("name", sorted(SAME_WORDS))
def test_message_has_the_words_of_the_server(cases: Path, name: str) -> None:
    """A search for the server's message finds ours."""
    words = SAME_WORDS[name]
    assert words in VERDICTS[name]["error"]
    assert any(words in error.message for error in check(cases, name).errors)


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, case in sorted(VERDICTS.items())
        if case["verdict"] != "rejected"
        and not name.startswith("odd_")
        and name not in CANNOT_SERVE
        and name not in DUMMY_FILES
    ],
)
def test_repository_that_serves_has_no_error(cases: Path, name: str) -> None:
    """A repository that loads and serves has no error; a TensorRT plan needs a GPU for that."""
    case = VERDICTS[name]
    platform: Platform = "sagemaker" if case["mode"] == "sme" else "sagemaker-multi-model"
    target = Target(platform, gpu_count=1, default_model=case.get("default_model"))
    assert ModelRepository.from_directory(cases / name).check(target, is_packed=False).errors == ()


@pytest.mark.parametrize("name", sorted(VERDICTS))
def test_findings_have_a_place_in_a_file(cases: Path, name: str) -> None:
    """The place of every finding is within the text of a file that exists."""
    assert misplaced(check(cases, name), cases / name) == []


def test_exceptions_are_rejected_by_the_server() -> None:
    """Each exception is a repository that the server rejects,
    so the list cannot hide a false error.
    """
    assert all(VERDICTS[name]["verdict"] == "rejected" for name in NEEDS_EXECUTION)
