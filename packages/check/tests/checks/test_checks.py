"""Every rule, by its examples: the smallest repository that trips it, the same fixed,
its hint followed.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from check_examples import EXAMPLES, Files, code_of, write
from check_examples.onnx_models import relu
from check_examples.python_backend import PYTHON, packed
from check_examples.repositories import (
    CLASS,
    ENVIRONMENT,
    HEAD,
    HERE,
    IO,
    ONE_STEP,
    ensemble,
    one,
    pipe,
    step,
)
from hint_cases import CASES, REASONS, left_after

from triton_model_check.checks import chapters
from triton_model_check.checks.chapters import RULES
from triton_model_check.checks.report import Report
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository

PROJECT = Path(__file__).resolve().parents[4]
CHECKS = Path(chapters.__file__).parent


def _check(files: Files, target: Target | None, directory: Path) -> Report:
    repository = ModelRepository.from_directory(write(files, directory / "models"))
    return repository.check(target, is_packed=False)


def test_every_rule_has_examples() -> None:
    """Each rule has an example, and each example has a rule."""
    assert {code_of(key) for key in EXAMPLES} == set(RULES)
    assert set(RULES) <= set(EXAMPLES)


@pytest.mark.parametrize("key", sorted(EXAMPLES))
def test_failing_example_trips_only_its_rule(key: str, tmp_path: Path) -> None:
    """Only its own rule reports it, with an existing path or the repository,
    a hint and a source.
    """
    example, rule = EXAMPLES[key], RULES[code_of(key)]
    findings = _check(example.failing, example.target, tmp_path).findings
    assert {(finding.code, finding.severity) for finding in findings} == {
        (rule.code, rule.severity)
    }
    for finding in findings:
        path = tmp_path / "models" / finding.path
        assert finding.path == "." or path.is_symlink() or path.exists()
        assert finding.hint
        assert finding.source
        assert not finding.message.endswith(".")
        assert not finding.hint.endswith(".")


@pytest.mark.parametrize("key", sorted(EXAMPLES))
def test_fixed_example_has_no_findings(key: str, tmp_path: Path) -> None:
    """No rule reports the fixed example."""
    example = EXAMPLES[key]
    assert _check(example.fixed, example.fixed_target or example.target, tmp_path).findings == ()


@pytest.mark.parametrize("key", sorted(CASES))
def test_followed_hint_leads_to_success(key: str, tmp_path: Path) -> None:
    """After the steps of the hint the check reports neither this finding nor another error."""
    assert left_after(key, tmp_path) == []


def test_every_check_has_a_followed_hint_or_a_reason() -> None:
    """A check without a case says why its hint cannot be followed on one machine,
    and no other check does.
    """
    followed = {code_of(key) for key in CASES}
    assert set(RULES) - followed == set(REASONS)
    assert set(CASES) <= set(EXAMPLES)


# --- every fault has an example -------------------------------------------------------------------


def _faults() -> Iterator[tuple[str, int]]:
    """File and line of every ``yield Problem(...)``."""
    for path in CHECKS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            call = node.value if isinstance(node, ast.Yield) else None
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Name)
                and call.func.id == "Problem"
            ):
                yield path.name, call.lineno


def _lines_run_by_examples(directory: Path) -> set[tuple[str, int]]:
    lines: set[tuple[str, int]] = set()
    checks = str(CHECKS)

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        folder, _, name = frame.f_code.co_filename.rpartition("/")
        if not folder.startswith(checks):
            return None
        lines.add((name, frame.f_lineno))
        return trace

    before = sys.gettrace()
    for number, example in enumerate(EXAMPLES.values()):
        repository = ModelRepository.from_directory(write(example.failing, directory / str(number)))
        sys.settrace(trace)
        try:
            repository.check(example.target, is_packed=False)
        finally:
            sys.settrace(before)
    return lines


def test_every_fault_has_an_example(tmp_path: Path) -> None:
    """The failing examples together run every ``yield Problem(...)`` of the checks."""
    faults = set(_faults())
    assert len(faults) > 100
    assert sorted(faults - _lines_run_by_examples(tmp_path)) == []


# --- documentation --------------------------------------------------------------------------------


def test_template_with_placeholders_in_strings_gets_one_finding(tmp_path: Path) -> None:
    """A template gets one finding, however many of its strings contain placeholders."""
    files = one(HEAD + 'name: "${name}"\nparameters { key: "k" value { string_value: "${v}" } }\n')
    (finding,) = _check(files, None, tmp_path).findings
    assert finding.code == "layout-name-differs"
    assert finding.hint == "check the file that your script generates from this template"


def test_documentation_is_up_to_date() -> None:
    """The pages of the checks, and the examples of ``explain``,
    are what the generator writes today.
    """
    path = PROJECT / "dev" / "generate_checks_doc.py"
    spec = importlib.util.spec_from_file_location("generate_checks_doc", path)
    assert spec is not None
    assert spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    reference = PROJECT / "docs" / "reference"
    files = [reference / "checks.md", *(reference / "checks").iterdir()]
    written = {
        file.relative_to(reference).as_posix(): file.read_text(encoding="utf-8") for file in files
    }
    assert written == generator.render(), "run python dev/generate_checks_doc.py"
    assert json.loads(generator.DATA.read_text(encoding="utf-8")) == generator.examples()


# --- Python models --------------------------------------------------------------------------------

_IMPORTS = "import transformers\n"


@pytest.mark.parametrize(
    ("code", "files", "missing"),
    [
        (_IMPORTS, {}, ["transformers"]),
        ("import json, numpy.linalg\nfrom torch import nn\n", {}, ["torch"]),
        ("def f():\n    import pandas\n", {}, ["pandas"]),
        ("try:\n    import torch\nexcept ImportError:\n    torch = None\n", {}, []),
        ("import sys\nsys.path.append('/opt')\n" + _IMPORTS, {}, []),
        (_IMPORTS, {"m/1/transformers.py": ""}, []),
        (_IMPORTS, {"m/transformers/__init__.py": ""}, []),
        (_IMPORTS, {"m/triton_python_backend_stub": b"ELF"}, []),
    ],
)
def test_imports_that_the_image_lacks(
    code: str, files: dict[str, str | bytes | None], missing: list[str], tmp_path: Path
) -> None:
    """Only imports that must succeed count, and files of the model are found."""
    report = _check(
        {**one(HEAD), **files, "m/1/model.py": code + CLASS}, Target(default_model="m"), tmp_path
    )
    assert [each.message for each in report.findings] == [
        f'the image has no package "{name}"' for name in missing
    ]


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("text-syntax: open list", 'close the list above with "]"'),
        ("text-syntax: open list in braces", 'close the list with "]" before it'),
        ("text-syntax: no comma", 'write "," before it'),
        ("text-syntax: unit", "write a whole number without quotes and units"),
        ("text-syntax: comma at the end", "remove the comma before it"),
        (
            "text-unknown-field: parameter",
            (
                'write key: "model_type" value: { string_value: '
                '"..." }, with its value in place of the dots'
            ),
        ),
        ("python-class: the only class", 'rename class "Scaler" to "TritonPythonModel"'),
        ("python-execute-returns-none: sender", "set model_transaction_policy { decoupled: true }"),
        ("onnx-control: another name", 'write the name of an input of the model: "S"'),
        (
            "model-file-missing: model_type",
            'write parameters { key: "model_type" value { string_value: "xgboost_json" } }',
        ),
        ("vllm-engine-file: beside the version", "move model.json into 1/"),
        ("vllm-engine-file: not JSON", "correct the JSON at this place"),
        (
            "vllm-engine-argument: of older releases",
            "remove it, or ignore this if the vLLM of your image has it",
        ),
    ],
)
def test_hint_has_what_to_write(key: str, hint: str, tmp_path: Path) -> None:
    """The hint names the change that keeps what the file means, and no fix inverts it."""
    example = EXAMPLES[key]
    (found,) = _check(example.failing, example.target, tmp_path).findings
    assert found.hint == hint
    assert found.fix is None or key == "python-class: the only class"


def test_only_a_text_file_is_a_misnamed_configuration(tmp_path: Path) -> None:
    """Triton completes a model without a configuration; the hint is the same where it cannot."""
    files = {"m/1/model.onnx": relu(), "m/config.json": "{}", "m/labels.txt": "", "m/configs": None}
    found = _check(files, None, tmp_path).findings
    assert found == ()
    unknown = _check(
        {"m/1/weights.bin": "x", "m/config.pbtx": HEAD}, None, tmp_path / "unknown"
    ).findings
    hint = 'rename "config.pbtx" to "config.pbtxt"'
    assert [(each.code, each.hint) for each in unknown] == [
        ("backend-config-name", hint),
        ("backend-unknown", hint),
    ]


def test_place_of_an_error_in_json(tmp_path: Path) -> None:
    """The message has the line and the column of the error in ``model.json``."""
    (found,) = _check(EXAMPLES["vllm-engine-file: not JSON"].failing, None, tmp_path).findings
    assert "is not a JSON object: " in found.message
    assert "line 3 column 1" in found.message


def test_swapped_key_and_value_of_a_map(tmp_path: Path) -> None:
    """The key of a map is the model's tensor; the hint has the pair in the right order."""
    io = IO.replace('"X"', '"image"')
    right = pipe(step("a", "image", "Y"), io=io)
    files = ensemble(right.replace('key: "X" value: "image"', 'key: "image" value: "X"'))
    found = {each.code: each.hint for each in _check(files, None, tmp_path).findings}
    assert found["ensemble-unknown-tensor"] == 'swap the two: key: "X" value: "image"'


def test_source_of_a_python_model_is_checked_without_weights(tmp_path: Path) -> None:
    """Without local files, a ``model.py`` that is there is checked,
    and one that is not is listed.
    """
    files = {
        **one(HEAD, **{"m/1/model.py": CLASS.replace("execute", "exec")}),
        "n/config.pbtxt": HEAD,
    }
    report = _check(files, Target("server", local_files=False), tmp_path)
    assert [each.code for each in report.findings] == ["python-execute"]
    assert report.not_checked == ("n: model files not checked",)


def test_hint_names_the_package_and_not_the_module(tmp_path: Path) -> None:
    """PyPI's scikit-learn contains the module sklearn; a package sklearn would not install."""
    files = {**one(HEAD), "m/1/model.py": "import sklearn.svm\n" + CLASS}
    (finding,) = _check(files, Target(default_model="m"), tmp_path).findings
    assert finding.message == 'the image has no package "sklearn"'
    assert finding.hint is not None
    assert finding.hint.startswith("write scikit-learn into requirements.txt")


@pytest.mark.parametrize(
    ("names", "codes"),
    [
        (
            ["bin/activate", "lib/python3.12/site-packages/torch/__init__.py"],
            {"python-import-missing"},
        ),
        (["bin/activate", "lib/python3.12/site-packages/shared.pth"], set()),  # may add any folder
    ],
)
def test_imports_that_the_environment_lacks(
    names: list[str], codes: set[str], tmp_path: Path
) -> None:
    """The packages of an environment are known unless a ``.pth`` file adds folders."""
    files = {
        **one(HEAD + ENVIRONMENT % HERE),
        "m/env": packed(*PYTHON[1:], *names),
        "m/1/model.py": _IMPORTS + CLASS,
    }
    report = _check(files, Target(default_model="m", image_version="26.05"), tmp_path)
    assert {each.code for each in report.findings} == codes


@pytest.mark.parametrize(
    ("target", "is_left_out"),
    [(Target(default_model="pipe"), False), (Target("sagemaker-multi-model"), True), (None, False)],
)
def test_environment_of_another_model(
    target: Target | None, is_left_out: bool, tmp_path: Path
) -> None:
    """An archive contains the folders of an ensemble, but not those of unrelated models."""
    config = ENVIRONMENT % "$$TRITON_MODEL_DIRECTORY/../a/env"
    files = {**ensemble(ONE_STEP), "a/env": packed("bin/activate")}
    if target is not None and target.mode == "single":
        steps = pipe(step("a", "X", "T"), step("b", "T", "Y"))
        files |= {"pipe/config.pbtxt": steps}
    files |= {"b/config.pbtxt": HEAD + config, "b/1/model.py": CLASS}
    report = _check(files, target, tmp_path)
    assert [each.code for each in report.findings] == (
        ["python-environment"] if is_left_out else []
    )
