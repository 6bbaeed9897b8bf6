"""The functions of docs/guides/callers.md, in an environment like Lambda's,
call local endpoints.
"""

from __future__ import annotations

import base64
import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from installed_wheels import build, install, run
from markdown_it import MarkdownIt
from members import PROJECT, members_of
from triton_server import needs_server

from constructs_triton_tools.local import LocalEndpoint

BUDGET_MINUTES = 2
pytestmark = needs_server

PAGE = (PROJECT / "docs" / "guides" / "callers.md").read_text()
HANDLER = 'python title="function/handler.py"'
CALL = """
import json, sys
from handler import handler
print(json.dumps(handler(json.load(open(sys.argv[1])), None)))
"""


def blocks(info: str) -> list[str]:
    """The code blocks of the page with this heading line."""
    return [token.content for token in MarkdownIt().parse(PAGE) if token.info == info]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with what Lambda's runtime has: boto3, and none of our packages."""
    environment = install(sys.executable, tmp_path_factory.mktemp("runtime"), "boto3")
    assert not {"numpy", *(member.name for member in members_of())} & environment.packages
    return environment.python


@pytest.fixture(scope="module")
def function(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the function after the page's command, for the Python that runs the tests."""
    folder = tmp_path_factory.mktemp("package")
    (command,) = blocks("bash")
    _, *words = shlex.split(
        command.replace("\\\n", "").replace("3.13", f"3.{sys.version_info.minor}")
    )
    build(folder / "dist")
    run(
        sys.executable,
        "-m",
        "pip",
        *words,
        cwd=folder,
        variables={"PIP_FIND_LINKS": str(folder / "dist")},
    )
    return folder / "function"


def call(
    python: Path, function: Path, event: dict[str, Any], local: LocalEndpoint, **variables: str
) -> Any:
    """Run the handler in a new process, as Lambda does at a cold start, and return its response."""
    path = function / "event.json"
    path.write_text(json.dumps(event))
    runtime = {
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_REGION": "eu-central-1",
        "AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME": local.endpoint_url,
        "PYTHONPATH": str(function),
    }
    return json.loads(run(python, "-c", CALL, path, cwd=function, variables=runtime | variables))


def test_function_with_the_client_calls_the_endpoint_of_the_page(
    python: Path, function: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder has the client and what it requires;
    the function reads a digit with the page's stack.
    """
    packages = {each.name.partition("-")[0] for each in function.glob("*.dist-info")}
    assert packages == {"constructs_triton_client", "constructs_triton_core", "numpy"}
    monkeypatch.syspath_prepend(PROJECT / "assets" / "training")
    from split import encode_png, held_out_images

    stack, _ = blocks("python")
    (tmp_path / "models").symlink_to(PROJECT / "assets" / "model_repositories" / "digits")
    run(
        sys.executable,
        "-c",
        stack,
        cwd=tmp_path,
        variables={"CDK_OUTDIR": str(tmp_path / "cdk.out")},
    )
    (function / "handler.py").write_text(blocks(HANDLER)[0])
    images, digits = held_out_images()
    with LocalEndpoint.from_assembly(tmp_path / "cdk.out") as local:
        (name,) = local.endpoint_names
        event = {"body": base64.b64encode(encode_png(images[0])).decode()}
        answer = call(python, function, event, local, DIGITS_ENDPOINT=name)
    assert answer == {"statusCode": 200, "body": json.dumps({"label": str(digits[0])})}


def test_function_without_the_client_calls_an_endpoint(python: Path, tmp_path: Path) -> None:
    """With boto3 alone, the function gets ten logits for 64 numbers."""
    (tmp_path / "handler.py").write_text(blocks(HANDLER)[1])
    classifier = PROJECT / "assets" / "model_repositories" / "digits" / "classifier"
    with LocalEndpoint.from_repository(
        classifier.parent, endpoint="digits", model="classifier"
    ) as local:
        answer = call(python, tmp_path, {"pixels": [0.0] * 64}, local, CLASSIFIER_ENDPOINT="digits")
    assert len(answer) == 10
