"""Which syntax is valid for the Python of an image, whatever Python runs the check."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest
from check_examples.repositories import CLASS, HEAD, one, write

from triton_model_check.model import ruff_parser
from triton_model_check.model.python_grammar import RUNNING, may_be_newer
from triton_model_check.model.python_source import PythonSource
from triton_model_check.model.ruff_parser import Fault, Question, ask_ruff
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository

COMPILER_FAULTS = (
    "def f():\n    await x\n",
    "def f(x, x):\n    pass\n",
    "def f():\n    x = 1\n    global x\n",
    "def f():\n    nonlocal x\n",
    "continue\n",
    "class A:\n    return 1\n",
)
NEW_STRING = b"""print(f"{d["a"]}")\n"""


@pytest.mark.parametrize("source", COMPILER_FAULTS)
def test_errors_of_the_compiler_are_found(source: str) -> None:
    """What the parser accepts and the compiler refuses is an error for every Python."""
    found = PythonSource("model.py", source.encode(), (3, 8))
    assert isinstance(found.fault, SyntaxError)
    assert found.is_fault_of_compiler


@pytest.mark.parametrize(
    ("source", "python", "is_valid"),
    [
        (b"try:\n    pass\nexcept* OSError:\n    pass\n", (3, 10), False),
        (b"try:\n    pass\nexcept* OSError:\n    pass\n", (3, 11), True),
        (b"match 1:\n    case _:\n        pass\n", (3, 9), False),
        (b"if (x := 1):\n    pass\n", (3, 8), True),
    ],
)
def test_newer_statement_is_refused(source: bytes, python: tuple[int, int], is_valid: bool) -> None:
    """A statement that is newer than the Python of the image is a syntax error."""
    assert (PythonSource("model.py", source, python).fault is None) is is_valid


@pytest.mark.parametrize(
    ("source", "python", "is_new"),
    [
        (b"x[*y]\n", (3, 10), True),
        (b"x[y]\n", (3, 10), False),
        (b"with open('x') as file:\n    pass\n", (3, 8), True),
        (b"print(f'{x}')\n", (3, 10), False),
        pytest.param(
            b"print(f'{x[\"a\"]}')\n",
            (3, 10),
            True,
            marks=pytest.mark.skipif(sys.version_info < (3, 12), reason="no newer f-strings"),
        ),
    ],
)
def test_expression_that_may_be_newer(source: bytes, python: tuple[int, int], is_new: bool) -> None:
    """Only expressions whose tree is the same for older syntax need another program."""
    assert may_be_newer(ast.parse(source), source, python) is is_new


def test_ruff_decides_by_the_version() -> None:
    """Ruff accepts and refuses the same source for different versions, and finds its place."""
    versions = ((3, 12), (3, 10), (3, 10))
    sources = (NEW_STRING, NEW_STRING, b"x = 1\n")
    questions = [Question(*each) for each in zip(sources, versions, strict=True)]
    valid, fault, other = ask_ruff(questions)
    assert valid is None
    assert other is None
    assert isinstance(fault, Fault)
    assert "3.12" in fault.message
    assert fault.line == 1


def test_ruff_that_fails_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source is not checked if Ruff takes too long, ends or answers something else."""
    question = Question(NEW_STRING, (3, 12))
    monkeypatch.setattr(ruff_parser, "_SECONDS", 0.0)
    (answer,) = ask_ruff([question])
    assert isinstance(answer, str)
    assert answer.startswith("syntax of Python 3.12 not checked: ruff failed: ")


def _report(folder: Path, source: bytes, version: str) -> tuple[list[str], tuple[str, ...]]:
    files = one(HEAD, **{"m/1/model.py": CLASS.encode() + source})
    repository = ModelRepository.from_directory(write(files, folder / "models"))
    report = repository.check(Target.named("server", image_version=version), is_packed=False)
    return [each.code for each in report.findings], report.not_checked


@pytest.mark.skipif(RUNNING >= (3, 12), reason="this Python reads the string itself")
def test_newer_python_than_that_of_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Valid syntax of the image's newer Python is no error, with or without ruff."""
    codes, not_checked = _report(tmp_path / "valid", NEW_STRING, "26.05")
    assert codes == []
    assert "only the syntax is checked" in not_checked[0]
    codes, _ = _report(tmp_path / "invalid", b"def\n", "26.05")
    assert codes == ["python-syntax"]
    monkeypatch.setattr(ruff_parser, "_is_ruff_installed", lambda: False)
    codes, not_checked = _report(tmp_path / "without", NEW_STRING, "26.05")
    assert codes == []
    assert "pip install 'triton-model-check[python]'" in not_checked[0]
