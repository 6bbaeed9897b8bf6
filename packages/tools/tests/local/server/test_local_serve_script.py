"""The container's environment variables as server flags, as the image's start script sets them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from constructs_triton_core.errors import ContainerExitError
from constructs_triton_tools.local.server.serve_script import server_command

ALWAYS = ["--allow-sagemaker=true", "--allow-http=false", "--model-control-mode=explicit"]
SHM = "--backend-config=python,shm-"


def _command(folder: Path, environment: dict[str, str]) -> list[str]:
    return list(server_command(environment, single=folder, multi=folder / "multi").arguments)


def _repository(folder: Path, *models: str) -> Path:
    for model in models:
        (folder / model).mkdir(parents=True)
    return folder


def test_defaults_of_the_script(tmp_path: Path) -> None:
    """The order is the script's, verbose logging is on,
    and the only model is found and exported.
    """
    command = server_command({}, single=_repository(tmp_path, "m"), multi=tmp_path / "multi")
    assert list(command.arguments) == [
        *ALWAYS,
        f"--model-repository={tmp_path}",
        "--model-namespacing=true",
        "--allow-grpc=false",
        "--allow-metrics=false",
        "--log-verbose=true",
        f"{SHM}default-byte-size=16777216",
        f"{SHM}growth-byte-size=1048576",
        "--load-model=m",
    ]
    assert command.environment == {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "m"}
    assert "WARNING: No SAGEMAKER_TRITON_DEFAULT_MODEL_NAME provided." in command.messages[0]


@pytest.mark.parametrize(
    ("variable", "value", "flag"),
    [
        ("SAGEMAKER_TRITON_DISABLE_MODEL_NAMESPACING", "false", "--model-namespacing=false"),
        ("SAGEMAKER_BIND_TO_PORT", "9000", "--sagemaker-port=9000"),
        ("SAGEMAKER_SAFE_PORT_RANGE", "1-2", "--sagemaker-safe-port-range=1-2"),
        ("SAGEMAKER_TRITON_ALLOW_GRPC", "true", "--allow-grpc=true"),
        ("SAGEMAKER_TRITON_GRPC_PORT", "8001", "--grpc-port=8001"),
        ("SAGEMAKER_TRITON_ALLOW_METRICS", "true", "--allow-metrics=true"),
        ("SAGEMAKER_TRITON_METRICS_PORT", "8002", "--metrics-port=8002"),
        ("SAGEMAKER_TRITON_THREAD_COUNT", "4", "--sagemaker-thread-count=4"),
        ("SAGEMAKER_TRITON_BUFFER_MANAGER_THREAD_COUNT", "2", "--buffer-manager-thread-count=2"),
        ("SAGEMAKER_TRITON_LOG_VERBOSE", "0", "--log-verbose=0"),
        ("SAGEMAKER_TRITON_LOG_INFO", "false", "--log-info=false"),
        ("SAGEMAKER_TRITON_LOG_WARNING", "false", "--log-warning=false"),
        ("SAGEMAKER_TRITON_LOG_ERROR", "false", "--log-error=false"),
        ("SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE", "1", f"{SHM}default-byte-size=1"),
        ("SAGEMAKER_TRITON_SHM_GROWTH_BYTE_SIZE", "2", f"{SHM}growth-byte-size=2"),
        ("SAGEMAKER_TRITON_TENSORFLOW_VERSION", "2", "--backend-config=tensorflow,version=2"),
        ("SAGEMAKER_TRITON_ADDITIONAL_ARGS", " --a=1   --b", "--b"),
    ],
)
def test_each_variable_becomes_its_flag(
    tmp_path: Path, variable: str, value: str, flag: str
) -> None:
    """Each variable replaces its default once; an empty one counts as absent."""
    folder = _repository(tmp_path, "m")
    given = _command(folder, {variable: value})
    assert flag in given
    assert _command(folder, {variable: ""}) == _command(folder, {})


def test_blanks_split_words_as_in_the_script(tmp_path: Path) -> None:
    """The script quotes nothing, so a model name with a space breaks the command line."""
    folder = _repository(tmp_path, "my model")
    command = _command(folder, {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "my model"})
    assert command[-2:] == ["--load-model=my", "model"]


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ({}, None),
        ({"SAGEMAKER_TRITON_OVERRIDE_PING_MODE": "ready"}, None),
        ({"SAGEMAKER_TRITON_PING_MODE": "anything"}, "live"),
        (
            {"SAGEMAKER_TRITON_PING_MODE": "", "SAGEMAKER_TRITON_OVERRIDE_PING_MODE": "ready"},
            "ready",
        ),
    ],
)
def test_the_ping_mode_is_exported_only_if_it_came_from_outside(
    tmp_path: Path, given: dict[str, str], seen: str | None
) -> None:
    """The script assigns the variable without exporting it;
    only an inherited one reaches the server.
    """
    environment = {"SAGEMAKER_MULTI_MODEL": "true", **given}
    command = server_command(environment, single=tmp_path, multi=tmp_path / "multi")
    assert command.environment.get("SAGEMAKER_TRITON_PING_MODE") == seen
    assert (tmp_path / "multi").is_dir()
    assert "--load-model" not in " ".join(command.arguments)


def _hidden(folder: Path) -> None:
    _repository(folder, "m", ".git")


def _linked(folder: Path) -> None:
    _repository(folder.parent / "far", "m")
    (folder / "m").symlink_to(folder.parent / "far" / "m")


@pytest.mark.parametrize(
    ("environment", "make", "words"),
    [
        (
            {},
            lambda folder: (folder / "config.pbtxt").touch(),
            "ERROR: Incorrect directory structure.",
        ),
        ({}, lambda *_: None, "ERROR: No model found in model repository"),
        ({}, _hidden, "ERROR: More than 1 model directory found"),
        ({}, _linked, "ERROR: No model found in model repository"),
        (
            {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "absent"},
            lambda folder: _repository(folder, "m"),
            (
                "ERROR: "
                "Directory with provided SAGEMAKER_TRITON_DEFAULT_MODEL_NAME absent does not exist"
            ),
        ),
        (
            {"SAGEMAKER_TRITON_INFERENCE_TYPE": "Infer"},
            lambda folder: _repository(folder, "m"),
            "ERROR: Invalid SAGEMAKER_TRITON_INFERENCE_TYPE 'Infer'",
        ),
    ],
)
def test_errors_of_the_script(
    tmp_path: Path, environment: dict[str, str], make: object, words: str
) -> None:
    """The errors have the words of the script: hidden folders count, symbolic links do not."""
    folder = tmp_path / "model"
    folder.mkdir()
    make(folder)  # type: ignore[operator]  # one of the functions above
    with pytest.raises(ContainerExitError, match=words):
        _command(folder, environment)


@pytest.mark.skipif(shutil.which("find") is None, reason="needs the find command")
def test_directories_are_counted_as_find_counts_them(tmp_path: Path) -> None:
    """The script counts with ``find -type d``; the real command agrees about
    hidden folders and links.
    """
    folder = tmp_path / "model"
    folder.mkdir()
    _linked(folder)
    _repository(folder, ".hidden")
    listing = [
        "find",
        str(folder),
        "-mindepth",
        "1",
        "-maxdepth",
        "1",
        "-type",
        "d",
        "-printf",
        "%f\n",
    ]
    found = subprocess.run(listing, capture_output=True, text=True, check=True).stdout.split()
    assert found == [".hidden"]
    assert "--load-model=.hidden" in _command(folder, {})
