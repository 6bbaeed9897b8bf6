"""Which ways through ``execute`` return no response."""

from __future__ import annotations

from textwrap import indent

import pytest

from triton_model_check.model_config.python_source import PythonSource

MODEL = "class TritonPythonModel:\n    def execute(self, requests):\n{}\n"


def line_of(body: str) -> int | None:
    return PythonSource("1/model.py", MODEL.format(indent(body, " " * 8)).encode()).line_without_response


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("print()", 2),
        ("return", 3),
        ("if requests:\n    return [1]", 2),
        ("for each in requests:\n    return [1]", 2),
        ("while requests:\n    return [1]", 2),
        ("try:\n    return [1]\nexcept ValueError:\n    print()", 2),
        ("match requests:\n    case []:\n        return [1]", 2),
        ("if requests:\n    return None\nreturn [1]", 4),
        ("while True:\n    break", 2),
        ("with self.lock:\n    print()", 2),
    ],
)
def test_a_way_without_a_response_has_a_line(body: str, line: int) -> None:
    """It is the line of the empty return, or of the method if its end can be reached."""
    assert line_of(body) == line


@pytest.mark.parametrize(
    "body",
    [
        "return [1]",
        "raise ValueError",
        "yield None",
        "pass",
        "if requests:\n    return [1]\nelse:\n    raise ValueError",
        "while True:\n    print()",
        "try:\n    return [1]\nexcept ValueError:\n    raise",
        "try:\n    print()\nfinally:\n    return [1]",
        "with self.lock:\n    return [1]",
        "match requests:\n    case []:\n        return [1]\n    case _:\n        return [2]",
        "def later():\n    return None\nreturn [1]",
        "return self.answer(requests)",
    ],
)
def test_a_method_that_always_returns_a_value_has_none(body: str) -> None:
    """Every way ends in a response, an error or never; functions in it do not count."""
    assert line_of(body) is None
