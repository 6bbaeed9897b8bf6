"""The wheels that users install, in environments that have nothing else."""

from __future__ import annotations

import email
import re
import sys
import tarfile
import zipfile
from collections.abc import Callable
from email.message import Message
from pathlib import Path

import pytest
from installed_wheels import (
    PYTHON_VERSIONS,
    Environment,
    add,
    build_version,
    find_interpreter,
    install,
    run,
)
from members import PROJECT, Member, members_of
from packaging.utils import canonicalize_name
from parts import part
from smallest_uses import MODELS, MOST_MEGABYTES, MOST_MEGABYTES_OF_OTHERS, USES

BUDGET_MINUTES = 5
MEMBERS = {member.name: member for member in members_of()}
#: The packages of the root's wheel, and where their files are.
ROOT_PACKAGES = ("constructs_triton", "packages/functions/src", "packages/tools/src")
EXAMPLE = "constructs_triton_tools/cli/project/examples/digits/models"
OTHER_VERSION = "99.0"
INSTALLED = [(member.name, version) for member in MEMBERS.values() for version in PYTHON_VERSIONS]
REQUIRED = {
    "constructs-triton-core": set[str](),
    "triton-model-check": {
        *("blake3", "constructs-triton-core", "isal", "pathspec", "platformdirs", "protobuf"),
        *("rich", "markdown-it-py", "mdurl", "pygments", "typing-extensions"),
    },
    "constructs-triton-client": {"constructs-triton-core", "numpy"},
}
Install = Callable[[str, str], Environment]


@pytest.fixture(scope="module")
def installed(distributions: Path, tmp_path_factory: pytest.TempPathFactory) -> Install:
    """Return a package's environment: the package and what it requires, on a Python version."""
    environments: dict[tuple[str, str], Environment] = {}

    def installed(name: str, version: str) -> Environment:
        interpreter = find_interpreter(version)
        if interpreter is None:
            pytest.skip(f"Python {version} is not installed")
        if (name, version) not in environments:
            folder = tmp_path_factory.mktemp("environment")
            requirement = f"{name}=={MEMBERS[name].version}"
            environments[name, version] = install(
                interpreter, folder, requirement, dist=distributions
            )
        return environments[name, version]

    return installed


@pytest.fixture(scope="module")
def client(installed: Install) -> Environment:
    """An environment with the client."""
    return installed("constructs-triton-client", "3.11")


@pytest.fixture(scope="module")
def constructs(installed: Install) -> Environment:
    """An environment with the constructs."""
    return installed("constructs-triton", "3.11")


@pytest.fixture(scope="module")
def with_pip(distributions: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the constructs, and pip to install what a new project requires."""
    member = MEMBERS["constructs-triton"]
    requirements = (f"{member.name}=={member.version}", "pip")
    return install(
        sys.executable, tmp_path_factory.mktemp("pip"), *requirements, dist=distributions
    )


def _listed(folder: Path) -> set[str]:
    """Return the files of a folder that git knows, relative to the project."""
    return set(run("git", "ls-files", folder, cwd=PROJECT).splitlines())


def _sources(member: Member) -> set[str]:
    """Return the modules of a package and the other files that its distributions contain."""
    folders = ROOT_PACKAGES if member.folder == "." else (f"{member.folder}/src",)
    return {name for folder in folders for name in _listed(PROJECT / folder)}


def _metadata(distributions: Path, member: Member) -> Message:
    with zipfile.ZipFile(_wheel(distributions, member)) as archive:
        name = f"{member.module}-{member.version}.dist-info/METADATA"
        return email.message_from_bytes(archive.read(name))


def _wheel(distributions: Path, member: Member) -> Path:
    return distributions / f"{member.module}-{member.version}-py3-none-any.whl"


@pytest.mark.parametrize("member", MEMBERS.values(), ids=MEMBERS)
def test_wheel_contains_the_package_and_nothing_else(distributions: Path, member: Member) -> None:
    """The wheel has every file of the package that git knows, and the models of digits."""
    with zipfile.ZipFile(_wheel(distributions, member)) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    expected = {name.rpartition("/src/")[2] for name in _sources(member)}
    if member.folder == ".":
        models = (Path(name).relative_to(MODELS.relative_to(PROJECT)) for name in _listed(MODELS))
        expected |= {f"{EXAMPLE}/{name.as_posix()}" for name in models}
    assert packed == expected


@pytest.mark.parametrize("member", MEMBERS.values(), ids=MEMBERS)
def test_source_distribution_contains_the_package_and_its_documents(
    distributions: Path, member: Member
) -> None:
    """The source distribution has the package, the README and the license."""
    with tarfile.open(distributions / f"{member.module}-{member.version}.tar.gz") as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    expected = {Path(name).relative_to(member.folder).as_posix() for name in _sources(member)}
    if member.folder == ".":
        expected |= _listed(MODELS) | {"CHANGELOG.md"}
    assert packed - {".gitignore"} == expected | {
        "LICENSE",
        "README.md",
        "pyproject.toml",
        "PKG-INFO",
    }


def test_metadata_is_complete(distributions: Path) -> None:
    """The metadata has the licenses, the Python versions and the extras."""
    found = {name: _metadata(distributions, member) for name, member in MEMBERS.items()}
    constructs, check = found["constructs-triton"], found["triton-model-check"]
    assert constructs["License-Expression"] == "Apache-2.0 AND MIT"
    assert constructs.get_all("License-File") == [
        "LICENSE",
        "packages/tools/src/constructs_triton_tools/local/page/static/uPlot.LICENSE.txt",
    ]
    assert check["License-Expression"] == "Apache-2.0 AND BSD-3-Clause"
    assert check.get_all("License-File") == [
        "LICENSE",
        "src/triton_model_check/model_config/model_config.LICENSE.txt",
    ]
    others = [metadata for metadata in found.values() if metadata not in (constructs, check)]
    assert {(each["License-Expression"], each["License-File"]) for each in others} == {
        ("Apache-2.0", "LICENSE")
    }
    assert [each["Requires-Python"] for each in found.values()] == [">=3.11"] * 5
    extras = {name: set(metadata.get_all("Provides-Extra", [])) for name, metadata in found.items()}
    wanted = {
        "all",
        "env",
        "hub",
        "load",
        "local",
        "server",
        "onnx",
        "plots",
        "rehearse",
        "testing",
    }
    assert wanted <= extras["constructs-triton"]
    assert extras["constructs-triton-client"] == {"aws", "bfloat16", "http"}
    # PyPI refuses a license classifier beside a license expression.
    classifiers = [line for each in found.values() for line in each.get_all("Classifier", [])]
    assert not [each for each in classifiers if each.startswith("License")]


@pytest.mark.parametrize(("name", "version"), part(INSTALLED))
def test_package_alone_has_its_smallest_use(installed: Install, name: str, version: str) -> None:
    """Each wheel works with what it requires, and the checker is small."""
    if not MEMBERS[name].allows(version):
        pytest.skip(f"{name} does not allow Python {version}")
    environment = installed(name, version)
    assert environment.megabytes <= MOST_MEGABYTES.get(name, MOST_MEGABYTES_OF_OTHERS)
    USES[name](environment)
    if name in REQUIRED:
        assert {canonicalize_name(each) for each in environment.packages} - REQUIRED[name] == {name}


@pytest.mark.parametrize(
    ("transport", "extra"),
    [("SageMakerTransport('digits')", "aws"), ("HttpTransport('http://[::1]:9')", "http")],
)
def test_missing_extra_of_the_client_is_named(
    client: Environment, transport: str, extra: str
) -> None:
    """Without the extra, a call says how to install it."""
    code = (
        "import numpy\n"
        "from constructs_triton_client import HttpTransport, SageMakerTransport, TritonClient\n"
        "from constructs_triton_core.errors import MissingDependencyError\n"
        f"try:\n    TritonClient({transport}).infer({{'x': numpy.zeros(1)}})\n"
        "except MissingDependencyError as error:\n    print(error)"
    )
    assert f"pip install 'constructs-triton-client[{extra}]'" in client.run("python", "-c", code)


def test_command_line_lists_the_commands(constructs: Environment) -> None:
    """``--help`` lists the commands, also those that need an extra."""
    printed = constructs.run("constructs-triton", "--help")
    assert {"check", "local", "rehearse"} <= set(
        re.findall(r"^ +([a-z-]+) ", printed, re.MULTILINE)
    )


def test_missing_extra_is_named(constructs: Environment) -> None:
    """Without boto3, a command that calls AWS fails and says how to install it."""
    printed = constructs.run("constructs-triton", "status", "digits", exit_code=2)
    assert re.search(r"pip install 'constructs-triton(-client)?\[\w+\]'", printed)


@pytest.mark.parametrize(
    ("options", "passed"),
    [([], 5), (["--example", "digits"], 5), (["--example", "multi-model"], 8)],
    ids=["template", "digits", "multi-model"],
)
def test_new_project_passes_its_own_tests(
    with_pip: Environment, distributions: Path, tmp_path: Path, options: list[str], passed: int
) -> None:
    """In an empty folder, the two commands of a new project's README pass."""
    with_pip.run("constructs-triton", "project", "new", tmp_path / "shop", *options)
    readme = (tmp_path / "shop" / "README.md").read_text()
    commands = [each.split() for each in re.findall(r"^    (python .*)$", readme, re.MULTILINE)]
    variables = {"PIP_FIND_LINKS": str(distributions)}
    printed = [
        run(with_pip.programs / program, *words, cwd=tmp_path / "shop", variables=variables)
        for program, *words in commands
    ]
    assert len(commands) == 2
    assert f"{passed} passed" in printed[1]


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the distributions of the last commit, in another version."""
    return build_version(OTHER_VERSION, tmp_path_factory.mktemp("other"))


@pytest.fixture
def all_installed(distributions: Path, tmp_path: Path) -> Environment:
    """An environment with all packages."""
    requirements = (f"{each.name}=={each.version}" for each in MEMBERS.values())
    return install(sys.executable, tmp_path, *requirements, dist=distributions)


def _sentence(printed: str, member: Member, version: str, core: str) -> list[str]:
    """Check the one sentence, and return the words of its command after ``pip install``."""
    line = printed.splitlines()[-1]
    start = (
        f"{member.name} {version}: needs constructs-triton-core {version}, "
        f"got {core}; run `pip install "
    )
    assert start in line
    return line.partition(start)[2].rstrip("`").split()


def test_other_version_of_core_is_one_error(all_installed: Environment, other: Path) -> None:
    """Whatever changed in core, each package reports the versions first;
    the printed command repairs them.
    """
    add(all_installed, other, "--no-deps", f"constructs-triton-core=={OTHER_VERSION}")
    for module in ("public_names", "errors", "program/program"):
        next(all_installed.folder.rglob(f"constructs_triton_core/{module}.py")).unlink()
    members = [member for member in MEMBERS.values() if member.name != "constructs-triton-core"]
    printed = ""
    for member in members:
        printed = all_installed.run("python", "-c", f"import {member.module}", exit_code=1)
        assert printed.splitlines()[-1].startswith(f"ImportError: {member.name} ")
        _sentence(printed, member, member.version, OTHER_VERSION)
    for program, name in [("constructs-triton",) * 2, ("triton-model-check",) * 2]:
        printed = all_installed.run(program, "check", MODELS, exit_code=2)
        assert len(printed.splitlines()) == 1
        words = _sentence(printed, MEMBERS[name], MEMBERS[name].version, OTHER_VERSION)
    add(all_installed, other, "--reinstall-package", "constructs-triton-core", *words)
    assert {each for each in MEMBERS if each in words} == {*MEMBERS}
    assert OTHER_VERSION in all_installed.run("constructs-triton", "--version")
    for name, use in USES.items():
        if name in ("triton-model-check", "constructs-triton-client", "cdk-rehearse"):
            use(all_installed)


@pytest.mark.parametrize("name", ["triton-model-check", "constructs-triton-client", "cdk-rehearse"])
def test_other_version_of_a_package_is_one_error(
    name: str, all_installed: Environment, other: Path
) -> None:
    """A package that an extra installed before is reported when it is used, also by a command."""
    add(all_installed, other, "--no-deps", f"{name}=={OTHER_VERSION}")
    member, core = MEMBERS[name], MEMBERS["constructs-triton-core"].version
    printed = all_installed.run(
        "python", "-c", f"import constructs_triton, {member.module}", exit_code=1
    )
    _sentence(printed, member, OTHER_VERSION, core)
    words = {
        "triton-model-check": ("check", MODELS),
        "constructs-triton-client": ("invoke", "digits", "--input", "x=1:FP32"),
        "cdk-rehearse": ("rehearse", "none", "none"),
    }
    printed = all_installed.run("constructs-triton", *words[name], exit_code=2)
    assert len(printed.splitlines()) == 1
    _sentence(printed, member, OTHER_VERSION, core)
