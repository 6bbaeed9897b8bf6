"""Which models a Python model calls, and which ways through it return no response,
read from its source.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest

from triton_model_check.model.folder import ModelFolder
from triton_model_check.model.python_calls import CallSite, ModelCalls, find_calls
from triton_model_check.model.python_source import PythonSource

HEAD = "import triton_python_backend_utils as pb_utils\n"


def calls_in(
    tmp_path: Path, source: str, config: str = 'backend: "python"', **modules: str
) -> ModelCalls:
    folder = tmp_path / "m"
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(config)
    (folder / "1" / "model.py").write_text(HEAD + source)
    for name, content in modules.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HEAD + content)
    return find_calls(ModelFolder("m", folder))


REQUEST = "pb_utils.InferenceRequest(inputs=[], model_name={})\n"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (REQUEST.format('"scale"'), ["scale"]),
        (
            (
                "from triton_python_backend_utils import InferenceRequest\n"
                "InferenceRequest(model_name='a')"
            ),
            ["a"],
        ),
        ("NAME = 'scale'\n" + REQUEST.format("NAME"), ["scale"]),
        ("def f(self):\n    self.name = 'a'\n    " + REQUEST.format("self.name"), ["a"]),
        ("x = 'a'\nx = 'b'\n" + REQUEST.format("x"), ["a", "b"]),
        (REQUEST.format("'a' if True else 'b'"), ["a", "b"]),
        ("pb_utils.InferenceRequest('id', 1, [], ['y'], 'scale')", ["scale"]),
        ("print(pb_utils.InferenceResponse([]))", []),
    ],
)
def test_called_models_are_strings_in_the_source(
    tmp_path: Path, source: str, expected: list[str]
) -> None:
    """A name is found as a string, in a variable or attribute of strings,
    and as a positional argument.
    """
    found = calls_in(tmp_path, source)
    assert list(found.sites) == expected
    assert not found.unknown


@pytest.mark.parametrize(
    "source",
    [
        REQUEST.format("f'scale-{1}'"),
        "def f(name):\n    " + REQUEST.format("name"),
        "name = 'a'\nname += 'b'\n" + REQUEST.format("name"),
        "for name in ('a', 'b'):\n    " + REQUEST.format("name"),
        "name, other = 'a', 'b'\n" + REQUEST.format("name"),
        "with open('f') as name:\n    " + REQUEST.format("name"),
        REQUEST.format("'a' if True else NAMES[0]"),
        "pb_utils.InferenceRequest(**arguments)",
    ],
)
def test_other_names_are_unknown(tmp_path: Path, source: str) -> None:
    """A name that is computed is reported with the line of the call."""
    found = calls_in(tmp_path, source)
    assert not found.sites
    assert found.unknown == (CallSite("m/1/model.py", len(source.splitlines()) + 1),)


def test_imported_modules_of_the_folder_are_read(tmp_path: Path) -> None:
    """Relative and absolute imports are followed; a module that nothing imports is not read."""
    found = calls_in(
        tmp_path,
        "from . import client\nimport shared.names\n",
        **{
            "1__client": "from .deep import more\n" + REQUEST.format("'a'"),
            "1__deep__more": REQUEST.format("'b'"),
            "shared__names": "import missing\n" + REQUEST.format("'c'"),
            "1__unused": REQUEST.format("'d'"),
        },
    )
    assert found.sites == {
        "a": CallSite("m/1/client.py", 3),
        "c": CallSite("m/shared/names.py", 3),
        "b": CallSite("m/1/deep/more.py", 2),
    }


def test_only_python_models_call(tmp_path: Path) -> None:
    """Files of other backends are not read, and neither is a file that is not valid Python."""
    call = REQUEST.format("'a'")
    assert not calls_in(tmp_path / "onnx", call, 'backend: "onnxruntime"').models
    assert not calls_in(
        tmp_path / "other", call, 'backend: "python" default_model_filename: "m.so"'
    ).models
    assert not calls_in(tmp_path / "broken", call + "def").models


MODEL = "class TritonPythonModel:\n    def execute(self, requests):\n{}\n"


def line_of(body: str) -> int | None:
    return PythonSource(
        "1/model.py", MODEL.format(indent(body, " " * 8)).encode()
    ).line_without_response


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
