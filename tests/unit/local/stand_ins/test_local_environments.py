"""Environments that are built again for the server's Python."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from handmade_wheels import write_wheel, write_wheels

from constructs_triton.cli import main
from constructs_triton_core.errors import InvalidValueError, LocalEndpointError
from constructs_triton_tools.building.environments.archive import lock_of_archive
from constructs_triton_tools.local.stand_ins.environments import replace_environments

MINOR = "{}.{}".format(*sys.version_info[:2])
PARAMETER = 'parameters {{ key: "EXECUTION_ENV_PATH" value {{ string_value: "{}" }} }}\n'


@pytest.fixture
def project(tmp_path: Path, own_cache: Path) -> Path:
    """Requirements with wheels, of which ``helper`` 1.5 is the newest."""
    write_wheels(tmp_path / "wheels")
    (tmp_path / "requirements.txt").write_text("--no-index\n--find-links ./wheels\npure\n")
    return tmp_path


def add_model(repository: Path, name: str, path: str) -> Path:
    (repository / name).mkdir(parents=True)
    (repository / name / "config.pbtxt").write_text('backend: "python"\n' + PARAMETER.format(path))
    return repository / name


def build(project: Path, output: Path) -> None:
    assert main(["env", "build", str(project / "requirements.txt"), "-o", str(output)]) == 0


def built_model(project: Path, folder: str = "unpacked") -> Path:
    """A model with an environment of its own, which is built."""
    model = add_model(project / folder, "m", "$$TRITON_MODEL_DIRECTORY/env.tar")
    build(project, model / "env.tar")
    return model


def replace(repository: Path, python: Path | None = None) -> list[str]:
    """Replace the environments, and return what is reported."""
    lines: list[str] = []
    replace_environments(repository, python or Path(sys.executable), lines.append)
    return lines


def test_shared_environment_is_built_once_for_the_server(project: Path) -> None:
    """Two models that share a file get the same packages for the Python of the server,
    and it is reported.
    """
    repository = project / "unpacked"
    first = add_model(repository, "first", "$$TRITON_MODEL_DIRECTORY/env.tar")
    add_model(repository, "second", "$$TRITON_MODEL_DIRECTORY/../first/env.tar")
    build(project, first / "env.tar")
    building, built = replace(repository)
    assert building.startswith(f"first/env.tar: building the environment for Python {MINOR} on ")
    assert built.endswith("in place of Python 3.12 of the image, with the same versions")
    with tarfile.open(first / "env.tar") as tar:
        names = tar.getnames()
        links = {each.name: each.linkname for each in tar if each.issym()}
    assert f"lib/python{MINOR}/site-packages/pure.py" in names
    assert f"lib/python{MINOR}/site-packages/~constructs-triton.pth" in names
    assert Path(links["bin/python3"]).exists()


def test_second_run_needs_no_uv(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment for the server is in the cache, also without the wheels."""
    for attempt in ("one", "two"):
        built_model(project, attempt)
        lines = replace(project / attempt)
        assert len(lines) == (2 if attempt == "one" else 1)
        shutil.rmtree(project / "wheels", ignore_errors=True)
        monkeypatch.setitem(sys.modules, "uv", None)


def test_other_versions_are_reported(project: Path) -> None:
    """A version without a wheel for the server's Python is replaced by one that has it."""
    write_wheel(project / "wheels", "only_image", "2.0", tag="cp312-cp312-manylinux_2_39_x86_64")
    write_wheel(project / "wheels", "only_image", "1.0", tag=f"cp{MINOR.replace('.', '')}-none-any")
    for index in range(12):
        write_wheel(project / "wheels", f"extra{index}")
    extras = "\n".join(f'extra{index}; python_version < "3.12"' for index in range(12))
    with (project / "requirements.txt").open("a") as file:
        file.write(f"only_image\n{extras}\n")
    built_model(project)
    line = replace(project / "unpacked")[-1]
    assert "; only-image 1.0 instead of 2.0, extra0 1.0 in addition, " in line
    assert line.endswith(" and 3 more")


def test_environment_that_cannot_be_built_here(project: Path) -> None:
    """The error names the environment and the server's Python, or --python."""
    write_wheel(project / "wheels", "only_image", tag="cp312-cp312-manylinux_2_39_x86_64")
    with (project / "requirements.txt").open("a") as file:
        file.write("only_image\n")
    built_model(project)
    with pytest.raises(
        LocalEndpointError, match="is not a working Python interpreter; set --python"
    ):
        replace(project / "unpacked", project / "absent")
    with pytest.raises(
        InvalidValueError, match=rf"^m/env\.tar: uv found no packages for Python {MINOR}"
    ):
        replace(project / "unpacked")


def test_environments_of_others_are_left_alone(project: Path) -> None:
    """Archives without a lock file, other paths and broken configurations are not touched."""
    repository = project / "unpacked"
    (repository / "broken").mkdir(parents=True)
    (repository / "broken" / "config.pbtxt").write_text("input [")
    add_model(repository, "absent", "$$TRITON_MODEL_DIRECTORY/env.tar")
    add_model(repository, "outside", "$$TRITON_MODEL_DIRECTORY/../../env.tar")
    add_model(repository, "absolute", "/opt/env.tar")
    conda = add_model(repository, "conda", "$$TRITON_MODEL_DIRECTORY/env.tar") / "env.tar"
    (project / "activate").write_text("")
    with tarfile.open(conda, "w") as tar:
        tar.add(project / "activate", "bin/activate")
    damaged = add_model(repository, "damaged", "$$TRITON_MODEL_DIRECTORY/env.tar") / "env.tar"
    damaged.write_text("text")
    before = conda.read_bytes()
    assert replace(repository) == []
    assert (conda.read_bytes(), damaged.read_text()) == (before, "text")
    assert lock_of_archive(conda) is None


def test_an_interpreter_of_the_system_has_no_further_packages(project: Path) -> None:
    """Outside a virtual environment, the packages of the interpreter are found
    without a further file.
    """
    model = built_model(project)
    code = "import sys; print(sys._base_executable)"
    base = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    replace(project / "unpacked", Path(base.strip()))
    with tarfile.open(model / "env.tar") as tar:
        assert not any(name.endswith("~constructs-triton.pth") for name in tar.getnames())
