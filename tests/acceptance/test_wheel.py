"""The wheel that users install, in an environment that has nothing else."""

from __future__ import annotations

import email
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
BUDGET_MINUTES = 5
pytestmark = pytest.mark.usefixtures("budget")
MODELS = PROJECT / "assets" / "model_repositories" / "digits"
APP = """
import sys

import aws_cdk as cdk

from constructs_triton import InstanceType, ModelSource, TritonEnsembleEndpoint, TritonModelRepository

app = cdk.App(outdir="cdk.out")
stack = cdk.Stack(app, "Digits")
models = TritonModelRepository(stack, "Models", source=ModelSource.from_directory(sys.argv[1]))
TritonEnsembleEndpoint(
    stack,
    "Endpoint",
    model_repository=models,
    ensemble="digits",
    instance_type=InstanceType.of("ml.g5.xlarge"),
)
app.synth()
"""


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command outside the checkout, and return what it prints."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distribution, and the wheel that is built from it as for a release."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "uv", "build", "--quiet", "--out-dir", folder, PROJECT, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def wheel(distributions: Path) -> Path:
    """The wheel."""
    (built,) = distributions.glob("*.whl")
    return built


@pytest.fixture(scope="module", params=["3.11", "3.12", "3.13"])
def programs(request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a new environment with the wheel and what it requires, without extras."""
    interpreter = interpreter_of(request.param)
    if interpreter is None:
        pytest.skip(f"Python {request.param} is not installed")
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "uv", "venv", "--quiet", "--python", interpreter, folder / "venv", cwd=folder)
    python = folder / "venv" / "bin" / "python"
    install = ("uv", "pip", "install", "--quiet", "--python", python, "-c", PROJECT / "constraints.txt")
    run(sys.executable, "-m", *install, wheel, cwd=folder)
    return python.parent


def interpreter_of(version: str) -> str | None:
    """Return the interpreter of a Python version, on the PATH or installed with pyenv."""
    command = [sys.executable, "-m", "uv", "python", "find", "--no-python-downloads", version]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode == 0:
        return found.stdout.strip()
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    return next((str(each) for each in sorted(versions.glob(f"{version}.*/bin/python"))), None)


def test_wheel_contains_the_package_and_nothing_else(wheel: Path) -> None:
    """Every file of the package that git knows is in the wheel, and no other."""
    listed = run("git", "ls-files", "constructs_triton", cwd=PROJECT).split()
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert packed == set(listed)


def test_source_distribution_contains_the_package_and_its_documents(distributions: Path) -> None:
    """The source distribution has the package, the README, the changelog and the license."""
    (built,) = distributions.glob("*.tar.gz")
    listed = run("git", "ls-files", "constructs_triton", cwd=PROJECT).split()
    documents = {".gitignore", "CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml"}
    with tarfile.open(built) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    assert packed == {*listed, *documents}


def test_metadata_is_complete(wheel: Path) -> None:
    """The wheel is typed, and its metadata has the license, the Python versions and the extras."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(name))
        assert "constructs_triton/py.typed" in archive.namelist()
    assert (metadata["Name"], metadata["License-Expression"]) == ("constructs-triton", "Apache-2.0")
    assert metadata["Requires-Python"] == "<3.14,>=3.11"
    assert {"all", "client", "local", "onnx", "load", "plots"} <= set(
        metadata.get_all("Provides-Extra") or ()
    )
    # PyPI refuses a license classifier beside a license expression.
    assert not [each for each in metadata.get_all("Classifier") or () if each.startswith("License")]


def test_command_line_starts(programs: Path, tmp_path: Path) -> None:
    """``--help`` lists the commands, and ``check`` checks a folder of models."""
    assert "check" in run(programs / "constructs-triton", "--help", cwd=tmp_path)
    run(programs / "constructs-triton", "check", MODELS, cwd=tmp_path)


def test_app_is_synthesized(programs: Path, tmp_path: Path) -> None:
    """A small app becomes a template with an endpoint."""
    (tmp_path / "app.py").write_text(APP)
    run(programs / "python", "app.py", MODELS, cwd=tmp_path)
    template = json.loads((tmp_path / "cdk.out" / "Digits.template.json").read_text())
    types = [resource["Type"] for resource in template["Resources"].values()]
    assert types.count("AWS::SageMaker::Endpoint") == 1


def test_missing_extra_is_named(programs: Path, tmp_path: Path) -> None:
    """Without the extra, an optional command says how to install it."""
    code = (
        "import numpy\n"
        "from constructs_triton_client import TritonClient\n"
        "try:\n    TritonClient.for_endpoint('digits').infer({'x': numpy.zeros(1)})\n"
        "except Exception as error:\n    print(error)"
    )
    assert "constructs-triton[client]" in run(programs / "python", "-c", code, cwd=tmp_path)


def test_new_project_passes_its_own_tests(wheel: Path, tmp_path: Path) -> None:
    """In an empty folder, the two commands of a new project's README pass."""
    uv = (sys.executable, "-m", "uv")
    venv = tmp_path / "venv"
    run(*uv, "venv", "--quiet", "--seed", "--python", sys.executable, venv, cwd=tmp_path)
    run(*uv, "pip", "install", "--quiet", "--python", venv / "bin" / "python", wheel, cwd=tmp_path)
    run(venv / "bin" / "constructs-triton", "project", "new", "shop", cwd=tmp_path)
    shop = tmp_path / "shop"
    commands = re.findall(r"^    (python .*)$", (shop / "README.md").read_text(), re.MULTILINE)
    printed = [run(venv / "bin" / "python", *command.split()[1:], cwd=shop) for command in commands]
    assert len(commands) == 2
    assert "5 passed" in printed[1]
