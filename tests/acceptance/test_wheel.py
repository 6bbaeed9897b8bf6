"""The wheels that users install, in environments that have nothing else."""

from __future__ import annotations

import email
import json
import re
import sys
import tarfile
import zipfile
from email.message import Message
from pathlib import Path

import pytest
from distributions import PROJECT, UV, build, installed, interpreter_of, new_environment, run, wheel_of

BUDGET_MINUTES = 5
pytestmark = pytest.mark.usefixtures("budget")
MODELS = PROJECT / "assets" / "model_repositories" / "digits"
EXAMPLE = "packages/tools/src/constructs_triton_tools/cli/project/examples/digits/models"
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


CALL = """
import numpy as np

from constructs_triton_client import InMemoryTransport, TritonClient
from constructs_triton_client.wire import decode_response

client = TritonClient(InMemoryTransport(lambda inputs: {"Y": inputs["X"] * 2}))
print(client.infer({"X": np.array([1.0, 2.0])})["Y"].tolist())
header = b'{"outputs":[{"name":"B","datatype":"BF16","shape":[1],"parameters":{"binary_data_size":2}}]}'
content_type = f"application/vnd.sagemaker-triton.binary+json;json-header-size={len(header)}"
print(set(decode_response(header + bytes(2), content_type).bit_patterns))
"""


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distributions, and the wheels that are built from them as for a release."""
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def wheels(distributions: Path) -> list[Path]:
    """The wheels of constructs-triton and of its client."""
    return [wheel_of(distributions, name) for name in ("constructs_triton", "constructs_triton_client")]


@pytest.fixture(scope="module", params=["3.11", "3.12", "3.13"])
def programs(
    request: pytest.FixtureRequest, wheels: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The programs of a new environment with the wheels and what they require, without extras."""
    return new_environment(interpreter_of(request.param), tmp_path_factory.mktemp("environment"), *wheels)


@pytest.fixture(scope="module", params=["3.11", "3.12", "3.13", "3.14"])
def client_python(
    request: pytest.FixtureRequest, wheels: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The Python of a new environment with the client's wheel and what it requires, without extras."""
    folder = tmp_path_factory.mktemp("client")
    return new_environment(interpreter_of(request.param), folder, wheels[1]) / "python"


def listed(folder: str) -> set[str]:
    """Return the files of a package that git knows, relative to the folder above it."""
    names = run("git", "ls-files", folder, cwd=PROJECT).split()
    return {Path(name).relative_to(Path(folder).parent).as_posix() for name in names}


def read_metadata(wheel: Path) -> Message:
    """Return the metadata of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        assert f"{wheel.name.partition('-')[0]}/py.typed" in archive.namelist()
        return email.message_from_bytes(archive.read(name))


@pytest.mark.parametrize("folder", ["constructs_triton", "client/constructs_triton_client"])
def test_wheel_contains_the_package_and_nothing_else(distributions: Path, folder: str) -> None:
    """The wheel has every file of the package that git knows, and the models of the example."""
    with zipfile.ZipFile(wheel_of(distributions, Path(folder).name)) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    models = {f"{EXAMPLE}/{name.partition('/')[2]}" for name in listed(str(MODELS.relative_to(PROJECT)))}
    assert packed == listed(folder) | (models if folder == "constructs_triton" else set())


@pytest.mark.parametrize(
    ("folder", "documents"),
    [
        ("constructs_triton", {"CHANGELOG.md", "LICENSE", "README.md", "pyproject.toml"}),
        ("client/constructs_triton_client", {"LICENSE", "README.md", "pyproject.toml"}),
    ],
)
def test_source_distribution_contains_the_package_and_its_documents(
    distributions: Path, folder: str, documents: set[str]
) -> None:
    """The source distribution has the package, the README and the license."""
    (built,) = distributions.glob(f"{Path(folder).name}-*.tar.gz")
    with tarfile.open(built) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    models = set(run("git", "ls-files", MODELS, cwd=PROJECT).split())
    others = documents | (models if folder == "constructs_triton" else set())
    assert packed == listed(folder) | others | {".gitignore", "PKG-INFO"}


def test_metadata_is_complete(wheels: list[Path]) -> None:
    """The wheels are typed, and their metadata has the licenses, the Python versions and the extras."""
    package, client = (read_metadata(wheel) for wheel in wheels)
    assert (package["Name"], client["Name"]) == ("constructs-triton", "constructs-triton-client")
    assert (package["Requires-Python"], client["Requires-Python"]) == ("<3.14,>=3.11", ">=3.11")
    assert package["License-Expression"] == "Apache-2.0 AND BSD-3-Clause AND MIT"
    assert package.get_all("License-File") == [
        "LICENSE",
        "packages/tools/src/constructs_triton_tools/local/page/static/uPlot.LICENSE.txt",
        "packages/check/src/triton_model_check/model_config/model_config.LICENSE.txt",
    ]
    assert (client["License-Expression"], client["License-File"]) == ("Apache-2.0", "LICENSE")
    assert {"all", "local", "onnx", "load", "plots"} <= set(package.get_all("Provides-Extra") or ())
    assert set(client.get_all("Provides-Extra") or ()) == {"aws", "bfloat16", "http"}
    # PyPI refuses a license classifier beside a license expression.
    classifiers = [*(package.get_all("Classifier") or ()), *(client.get_all("Classifier") or ())]
    assert not [each for each in classifiers if each.startswith("License")]


def test_client_requires_only_numpy(client_python: Path) -> None:
    """The environment has the client and NumPy, so neither aws-cdk-lib, jsii, protobuf nor grpcio."""
    assert installed(client_python.parent) == {"constructs-triton-client", "numpy"}


def test_client_calls_a_model(client_python: Path, tmp_path: Path) -> None:
    """In that environment a call is encoded and decoded, and a BF16 output is its bit patterns."""
    assert run(client_python, "-W", "error", "-c", CALL, cwd=tmp_path).split() == ["[2.0,", "4.0]", "{'B'}"]


@pytest.mark.parametrize(
    ("transport", "extra"),
    [("SageMakerTransport('digits')", "aws"), ("HttpTransport('http://[::1]:9')", "http")],
)
def test_missing_extra_of_the_client_is_named(
    client_python: Path, tmp_path: Path, transport: str, extra: str
) -> None:
    """Without the extra, a call says how to install it."""
    code = (
        "import numpy\n"
        "from constructs_triton_client import HttpTransport, SageMakerTransport, TritonClient\n"
        "from constructs_triton_core.errors import MissingDependencyError\n"
        f"try:\n    TritonClient({transport}).infer({{'x': numpy.zeros(1)}})\n"
        "except MissingDependencyError as error:\n    print(error)"
    )
    printed = run(client_python, "-c", code, cwd=tmp_path)
    assert f"pip install 'constructs-triton-client[{extra}]'" in printed


def test_base_install_has_no_client_of_triton(programs: Path) -> None:
    """constructs-triton without extras installs neither tritonclient, nor grpcio, nor boto3."""
    others = {"tritonclient", "grpcio", "ml-dtypes", "python-rapidjson", "boto3", "urllib3", "onnx"}
    assert installed(programs) & others == set()


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
    """Without boto3, a command that calls AWS fails and says how to install it."""
    code = "from constructs_triton.cli import main; assert main(['status', 'digits']) != 0"
    printed = run(programs / "python", "-c", code, cwd=tmp_path)
    assert "pip install 'constructs-triton-client[aws]'" in printed


@pytest.mark.parametrize("options", [[], ["--example", "digits"]], ids=["template", "digits"])
def test_new_project_passes_its_own_tests(wheels: list[Path], tmp_path: Path, options: list[str]) -> None:
    """In an empty folder, the two commands of a new project's README pass."""
    venv = tmp_path / "venv"
    run(*UV, "venv", "--quiet", "--seed", "--python", sys.executable, venv, cwd=tmp_path)
    run(*UV, "pip", "install", "--quiet", "--python", venv / "bin" / "python", *wheels, cwd=tmp_path)
    run(venv / "bin" / "constructs-triton", "project", "new", "shop", *options, cwd=tmp_path)
    shop = tmp_path / "shop"
    commands = re.findall(r"^    (python .*)$", (shop / "README.md").read_text(), re.MULTILINE)
    printed = [run(venv / "bin" / "python", *command.split()[1:], cwd=shop) for command in commands]
    assert len(commands) == 2
    assert "5 passed" in printed[1]
