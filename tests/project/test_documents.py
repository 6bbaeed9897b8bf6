"""Every Python block of the READMEs and the pages runs.

The blocks of a page run in order, in a folder with the models ``models`` and the project's
``assets``. A ``python`` block is a program of its own, a ``py`` block continues the one before it,
and a block with a title becomes the file of this name. boto3 reaches a simulated account, where all
endpoints give the same answer.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

import aws_cdk as cdk
import boto3
import numpy as np
import pytest
from check_examples import EXAMPLES, write
from check_examples.torch_and_plan import plan
from markdown_it import MarkdownIt
from moto import mock_aws
from moto.sagemakerruntime.responses import SageMakerRuntimeResponse
from programs import PROJECT, run_script

from constructs_triton.cli import main
from constructs_triton_client.wire import encode_response

DOCUMENTS = [
    PROJECT / "README.md",
    *sorted((PROJECT / "packages").glob("*/README.md")),
    *sorted((PROJECT / "docs").rglob("*.md")),
    *sorted((PROJECT / "dev" / "project").glob("*.md")),
]
FENCE = re.compile(r'(?P<kind>python|py)(?: title="(?P<title>[\w./]+)")?(?: hl_lines="[\d -]+")?')
#: Finds the pages with such a block for the names of the tests, without parsing all pages.
LINE_OF_FENCE = re.compile(rf"^\s*`{{3,}}\s*(?:{FENCE.pattern})\s*$", re.MULTILINE)
PROGRAM = (ast.Import, ast.ImportFrom, ast.Call, ast.FunctionDef, ast.ClassDef)
ZEROS = {"SCORES": 1000, "probabilities": 10, "logits": 10}
ANSWER = {name: np.zeros((1, size), np.float32) for name, size in ZEROS.items()}
MODELS = ("forecast", "resnet", "sentiment")
INDEX = {"version": 1, "target_models": {name: f"{name}-3f9c2a1b.tar.gz" for name in MODELS}}
#: The command with which the reader of the tutorial continues after a file.
COMMANDS = {"train.py": ["model", "new", "digits.onnx"]}
#: Pages whose folder ``models`` has other models than an ensemble that reads digits.
REPOSITORIES = {"multi_model.md": "catalog"}


@dataclass(frozen=True)
class Block:
    """A block of code: the first words of its fence, its first line in the page,
    and its content.
    """

    info: str
    line: int
    code: str

    @property
    def title(self) -> str | None:
        """The name of the file; ``None`` for a block without one."""
        return self._part("title")

    @property
    def kind(self) -> str | None:
        """``python`` for a program of its own, ``py`` for one that continues;
        ``None`` for other blocks.
        """
        return self._part("kind")

    def _part(self, name: str) -> str | None:
        found = FENCE.fullmatch(self.info)
        return found[name] if found else None


@cache
def blocks(page: Path) -> list[Block]:
    """All blocks of a page, also indented ones."""
    tokens = MarkdownIt().parse(page.read_text())
    found = (each for each in tokens if each.type in ("fence", "code_block") and each.map)
    return [Block(each.info.strip(), each.map[0] + 1, each.content) for each in found if each.map]


def is_program(code: str) -> bool:
    """Return whether a text is Python that does something."""
    try:
        return any(isinstance(node, PROGRAM) for node in ast.walk(ast.parse(code)))
    except SyntaxError:
        return False


def name(page: Path) -> str:
    return str(page.relative_to(PROJECT))


#: Run with the packages that they are about: tests/acceptance/test_sagemaker_sdk_page.py,
#: test_works_with.py.
ELSEWHERE = ("works_with.md", "embeddings.md")
PAGES = [
    page
    for page in DOCUMENTS
    if page.name not in ELSEWHERE and LINE_OF_FENCE.search(page.read_text())
]


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An account with the bucket of the pages, and an endpoint of every name."""
    encoded = encode_response(ANSWER)

    def invoke_endpoint(response: Any) -> Any:
        return 200, {"Content-Type": encoded.content_type}, encoded.body

    monkeypatch.setattr(SageMakerRuntimeResponse, "use_raw_body", True)
    monkeypatch.setattr(SageMakerRuntimeResponse, "invoke_endpoint", invoke_endpoint)
    with mock_aws():
        s3 = boto3.client("s3", region_name="us-east-1")
        s3.create_bucket(Bucket="my-models")
        s3.put_object(Bucket="my-models", Key="models/index.json", Body=json.dumps(INDEX))
        yield


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize("page", PAGES, ids=name)
def test_python_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks run unchanged, in the order of the page."""
    if page.name != "tutorial.md":  # it creates its models
        repository = REPOSITORIES.get(page.name, "digits")
        shutil.copytree(PROJECT / "assets" / "model_repositories" / repository, tmp_path / "models")
    if page.name == "compile.md":
        for gpu, files in (
            ("A10G", EXAMPLES["plan-gpu"].failing),
            ("T4", EXAMPLES["plan-gpu"].fixed),
        ):
            write({**files, "m/1/model.plan": plan("10.16.1.11")}, tmp_path / "compiled" / gpu)
    (tmp_path / "assets").symlink_to(PROJECT / "assets")
    monkeypatch.chdir(tmp_path)
    variables = {"CDK_OUTDIR": str(tmp_path / "cdk.out"), "DIGITS_ENDPOINT": "digits"}
    unvalidated = partial(
        cdk.App, builtin_cloud_formation_validation=False
    )  # its rules take five seconds
    with (
        mock.patch.dict(os.environ, variables, CLASSIFIER_ENDPOINT="classifier"),
        mock.patch.object(cdk, "App", unvalidated),
    ):
        run_blocks(page)


def run_blocks(page: Path) -> None:
    """Run the Python blocks in the current folder; a traceback has the lines of the page."""
    names: dict[str, Any] = {}
    for block in blocks(page):
        if block.kind is None:
            continue
        if block.title is not None:
            run_file(Path.cwd() / block.title, block.code)
            continue
        if block.kind == "python":
            names = {"__name__": "__main__"}
        exec(compile("\n" * block.line + block.code, page, "exec"), names)


def run_file(file: Path, code: str) -> None:
    """Write a file and run it, and the command that follows it."""
    file.parent.mkdir(exist_ok=True)
    file.write_text(code)
    run_script(file).check_returncode()
    if file.name in COMMANDS:
        assert main(COMMANDS[file.name]) == 0


@pytest.mark.parametrize("page", DOCUMENTS, ids=name)
def test_no_python_is_left_out(page: Path) -> None:
    """No fence or indentation leaves a block out:
    other blocks contain no Python that does something.
    """
    others = [block for block in blocks(page) if block.kind is None]
    assert [f"line {block.line}" for block in others if is_program(block.code)] == []
    assert [block.info for block in others if block.info.startswith("py")] == []


@pytest.mark.parametrize(
    "code", ["import os", "client.infer({})", "def handler(event, context):\n    ...\n"]
)
def test_program_is_recognized(code: str) -> None:
    """An import, a call and a function are Python that does something;
    a command and its output are not.
    """
    assert is_program(code)
    assert not is_program(f"$ python program.py\n{code}")
    assert not is_program('{"app": "python app.py"}')


def test_marked_lines_change_nothing() -> None:
    """A block whose new lines are marked runs as any other."""
    marked = Block('python title="app.py" hl_lines="3 5-7"', 1, "")
    assert (marked.kind, marked.title) == ("python", "app.py")
    assert Block('py hl_lines="2"', 1, "").kind == "py"
    assert Block("python lines", 1, "").kind is None
