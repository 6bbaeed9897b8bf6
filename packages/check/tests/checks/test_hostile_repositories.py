"""Repositories made to take time or memory: the check stays short, and says what it left out."""

from __future__ import annotations

from pathlib import Path

import pytest
from check_examples import write
from cpu_limit import cpu_limit

from constructs_triton_core.findings import Finding
from triton_model_check.checks.report import Report
from triton_model_check.model.python_source import is_over_budget
from triton_model_check.model_repository import ModelRepository
from triton_model_check.untrusted.budget import count_elements

PYTHON = 'backend: "python"\n'
TENSORS = (
    'input { name: "x" data_type: TYPE_FP32 dims: 1 }\noutput { name: '
    '"y" data_type: TYPE_FP32 dims: 1 }\n'
)
MODEL = b"class TritonPythonModel:\n    def execute(self, requests):\n        return []\n"
FIELD = "9223372036854775807,"


def _check(folder: Path, config: str, files: dict[str, bytes]) -> Report:
    write({"config.pbtxt": config, **files}, folder / "m")
    return ModelRepository.from_directory(folder).check()


def _codes(findings: tuple[Finding, ...]) -> dict[str, int]:
    codes = [finding.code for finding in findings]
    return {code: codes.count(code) for code in codes}


def test_a_hundred_findings_of_a_check_are_listed(tmp_path: Path) -> None:
    """A generated file may have any number of errors; one more finding says that there are more."""
    config = (
        PYTHON
        + "".join(f'input {{ name: "{number}" dims: 1 }}\n' for number in range(150))
        + TENSORS
    )
    report = _check(tmp_path, config, {"1/model.py": MODEL})
    assert set(_codes(report.findings).values()) == {101}
    assert "there are more errors of this check" in "".join(
        each.message for each in report.findings
    )


def test_long_messages_are_shortened(tmp_path: Path) -> None:
    """A message of a megabyte would hide all others."""
    gpus = "instance_group { kind: KIND_GPU gpus: [ " + "5," * 9000 + "5 ] }"
    report = _check(tmp_path, PYTHON + TENSORS + gpus, {"1/model.py": MODEL})
    assert report.findings
    assert max(len(each.message) for each in report.findings) <= 1001


@pytest.mark.parametrize(
    "source",
    [
        MODEL + b"#" * (1 << 20),
        MODEL + b"a\n" * 100_000,
        MODEL + b'x = f"' + b"{a}" * 30_000 + b'"' + b"#" * 100_000,
    ],
    ids=["bytes", "words", "f-string"],
)
def test_large_python_source_is_not_checked(source: bytes, tmp_path: Path) -> None:
    """It is named in the summary and is no error, because Triton may load it."""
    report = _check(tmp_path, PYTHON + TENSORS, {"1/model.py": source})
    assert (report.findings, report.verdict) == ((), "unknown")
    assert report.not_checked == (
        "m/1/model.py: content not checked: it is too large to be parsed",
    )


def test_large_module_of_a_python_model_is_ignored(tmp_path: Path) -> None:
    """A module that a model imports is read for the models that it calls,
    if it is not too large.
    """
    files = {"1/model.py": b"import other\n" + MODEL, "1/other.py": b"InferenceRequest\n" * 70_000}
    assert _check(tmp_path, PYTHON + TENSORS, files).findings == ()


def test_source_of_usual_size_is_parsed() -> None:
    """The bounds are far from what people write: 100,000 words and signs."""
    assert not is_over_budget(MODEL * 1500)
    assert not is_over_budget(MODEL + b"x = '" + b"a" * 1_000_000 + b"'")


@pytest.mark.parametrize(
    "config",
    [
        (
            'model_warmup { name: "w" inputs { key: "x" value { data_type: TYPE_FP32 '
            f'input_data_file: "f" dims: [ {FIELD * 9000}1 ] }} }} }}'
        ),
        (
            'sequence_batching { state { input_name: "a" output_name: "b" data_type: TYPE_FP32 '
            f'dims: [ 1 ] initial_state {{ name: "s" data_type: TYPE_FP32 dims: [ {FIELD * 9000}1 '
            '] data_file: "f" } } }'
        ),
        f'input {{ name: "r" data_type: TYPE_FP32 dims: [ {FIELD * 9000}1 ] '
        f"reshape {{ shape: [ {FIELD * 9000}2 ] }} }}",
    ],
    ids=["warm-up", "state", "reshape"],
)
def test_products_of_dims_are_bounded(config: str, tmp_path: Path) -> None:
    """The exact product has more digits than Python prints, and takes quadratic time."""
    files = {"1/model.py": MODEL, "warmup/f": b"x", "initial_state/f": b"x"}
    with cpu_limit():
        _check(tmp_path, PYTHON + TENSORS + config, files)


@pytest.mark.parametrize(
    ("dims", "count"),
    [([], 1), ([2, 3], 6), ([2**62, 4], 2**63), ([2**63, 2**63, 0], 0), ([-2, 2**63], -(2**63))],
)
def test_count_elements(dims: list[int], count: int) -> None:
    """The product is exact up to 2**63."""
    assert count_elements(dims) == count


def test_absolute_file_name_is_below_the_version(tmp_path: Path) -> None:
    """Triton appends an absolute default_model_filename to the path of the version."""
    config = 'backend: "onnxruntime"\ndefault_model_filename: "/etc/passwd"\n'
    (finding,) = _check(tmp_path, config, {"1/model.onnx": b""}).findings
    assert (finding.code, finding.path) == ("model-file-missing", "m/config.pbtxt")
    assert finding.message.startswith('failed to stat file "passwd": it does not exist')


@pytest.mark.parametrize(
    "name",
    ["/", "//", "/dev/zero", "../../../etc/passwd", "x" * 5000, "a/" * 100_000, "a\\\\000b"],
    ids=lambda name: name[:20],
)
@pytest.mark.parametrize(
    "backend", ["onnxruntime", "pytorch", "tensorrt", "openvino", "fil", "python", "dali"]
)
def test_strange_file_names_are_findings(name: str, backend: str, tmp_path: Path) -> None:
    """No name that a configuration gives ends the check, or reads a device."""
    config = f'backend: "{backend}"\ndefault_model_filename: "{name}"\n{TENSORS}'
    with cpu_limit():
        report = _check(tmp_path, config, {"1/model.onnx": b""})
    assert {each.path for each in report.findings} <= {
        "m/config.pbtxt",
        "m/1",
        "m",
        "m/1/model.onnx",
    }
