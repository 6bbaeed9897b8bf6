"""Settings of a project, and what the command line says beside them."""

from __future__ import annotations

from pathlib import Path

import pytest
from check_examples.repositories import CLASS, HEAD

from constructs_triton_core.errors import InvalidValueError
from triton_model_check.choosing.settings import OPTIONS, Settings
from triton_model_check.cli import main

MODEL = {"m/config.pbtxt": HEAD, "m/1/model.py": CLASS}
EVERY_KEY = """
target = "kubernetes"
image-version = "24.10"
shm-size = "256m"
shm-default-byte-size = "16m"
shm-growth-byte-size = "1m"
backends = ["mine"]
gpus = 0
gpu-memory = 22888
model-load-gpu-limit = 0.9
memory = "16g"
server-arguments = "--pinned-memory-pool-byte-size=0"
onnx-runtime = "fetch"
instance-type = "ml.g5.xlarge"
model-config-name = "h100"
fail-on-unknown = true
load-model = ["m"]
select = ["layout"]
ignore = ["text"]
[per-model-ignores]
"old_*" = ["layout"]
[per-file-ignores]
"*/1/model.py" = ["files"]
"""


def _write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_fraction_may_be_a_whole_number(tmp_path: Path) -> None:
    """``1`` is a fraction as ``1.0`` is; what is beyond 1 is refused with the limit."""
    name = "triton-model-check.toml"
    folder = _write(tmp_path, {name: "model-load-gpu-limit = 1"})
    assert Settings.of(folder).model_load_gpu_limit == 1
    _write(tmp_path, {name: "model-load-gpu-limit = 1.5"})
    with pytest.raises(InvalidValueError, match=r"model-load-gpu-limit.*from 0 to 1, got 1\.5"):
        Settings.of(folder)


def test_every_key_is_read(tmp_path: Path) -> None:
    """The values have the types of the options, and every key of the table of
    options is in the file.
    """
    settings = Settings.of(_write(tmp_path, {"triton-model-check.toml": EVERY_KEY}))
    assert settings == Settings(
        file=tmp_path / "triton-model-check.toml",
        target="kubernetes",
        image_version="24.10",
        shm_size=256 << 20,
        shm_default_byte_size=16 << 20,
        shm_growth_byte_size=1 << 20,
        backends=("mine",),
        gpus=0,
        gpu_memory=22888,
        model_load_gpu_limit=0.9,
        memory=16.0,
        server_arguments="--pinned-memory-pool-byte-size=0",
        onnx_runtime="fetch",
        instance_type="ml.g5.xlarge",
        model_config_name="h100",
        load_model=("m",),
        fail_on_unknown=True,
        select=("layout",),
        ignore=("text",),
        per_model_ignores={"old_*": ("layout",)},
        per_file_ignores={"*/1/model.py": ("files",)},
    )
    assert all(key in EVERY_KEY for key, option in OPTIONS.items() if "example" in option)


def test_the_nearest_file_with_settings_counts(tmp_path: Path) -> None:
    """A file without a table for this program is ignored, and a nearer file hides one above it."""
    files = {
        "pyproject.toml": '[tool.triton-model-check]\ntarget = "docker"\n',
        "a/pyproject.toml": '[project]\nname = "triton-model-check-user"\n',
        "a/b/triton-model-check.toml": 'target = "kserve"\n',
        "a/c/pyproject.toml": "this is no TOML\n",
        "a/d/pyproject.toml": 'tool = "triton-model-check"\n',
    }
    _write(tmp_path, files)
    found = {
        name: Settings.of(tmp_path / name).target
        for name in (".", "a", "a/b", "a/c", "a/d", "absent")
    }
    docker = dict.fromkeys((".", "a", "a/c", "a/d", "absent"), "docker")
    assert found == {**docker, "a/b": "kserve"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('tarxget = "server"', ':1: tarxget: unknown key; did you mean "target"'),
        ('target = "k8s"', ':1: target: must be a target, got "k8s"; use one of "server"'),
        ("target = 1", ':1: target: must be a string, got 1; write target = "kubernetes"'),
        ('gpus = "1"', ':1: gpus: must be a whole number, got "1"; write gpus = 1'),
        ("gpus = true", ":1: gpus: must be a whole number, got True; write gpus = 1"),
        ("gpus = -1", ":1: gpus: must be at least 0, got -1; raise it to 0"),
        (
            '\nimage-version = "new"',
            ":2: image-version: must be a Triton release (year and month)",
        ),
        (
            'image-version = "nvcr.io/nvidia/tritonserver:latest"',
            ':1: image-version: must be a Triton release (year and month), got "latest"',
        ),
        (
            'shm-size = "big"',
            ':1: shm-size: must be a size, got "big"; write for example 256m or 1g',
        ),
        ('instance-type = "x"', ":1: instance-type: must be the name of a SageMaker instance type"),
        (
            'ignore = "text"',
            ':1: ignore: must be a list of strings, got "text"; write ignore = ["layout-',
        ),
        ("select = [1]", ":1: select: must be a list of strings, got a list; write select = "),
        (
            'per-model-ignores = ["m"]',
            (
                ":1: per-model-ignores: must be a table of lists, "
                "got a list; write per-model-ignores = {"
            ),
        ),
    ],
)
def test_wrong_settings_name_file_key_and_fix(text: str, message: str, tmp_path: Path) -> None:
    """The error has the line of the key, what is wrong, and what to write."""
    file = tmp_path / "triton-model-check.toml"
    file.write_text(text + "\n")
    with pytest.raises(InvalidValueError) as raised:
        Settings.of(tmp_path)
    assert str(raised.value).startswith(f"{file}{message}")


def test_a_table_that_is_none_is_an_error(tmp_path: Path) -> None:
    """The key of pyproject.toml is named with its table."""
    _write(tmp_path, {"pyproject.toml": "[tool]\ntriton-model-check = 1\n"})
    with pytest.raises(
        InvalidValueError, match=r"tool\.triton-model-check: must be a table, got 1"
    ):
        Settings.of(tmp_path)


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ((), "23.09 on Kubernetes"),
        (("--target", "docker"), "23.09 in a container"),
        (("--image-version", "24.10"), "24.10 on Kubernetes"),
        (("--image-version", "nvcr.io/nvidia/tritonserver:24.10-py3"), "24.10 on Kubernetes"),
        (("--target", "sagemaker"), "23.09 on a SageMaker single-model endpoint"),
    ],
)
def test_the_command_line_has_precedence(
    words: tuple[str, ...], place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each option replaces the setting of its name, and leaves the others."""
    _write(tmp_path, {f"models/{name}": text for name, text in MODEL.items()})
    (tmp_path / "triton-model-check.toml").write_text(
        'target = "kubernetes"\nimage-version = "23.09"\n'
    )
    main(["check", str(tmp_path / "models"), *words])
    assert f"Triton {place} " in capsys.readouterr().out.splitlines()[-1]


def test_without_target_models_run_on_a_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A default model alone means SageMaker, because nothing else has one."""
    folder = _write(tmp_path / "models", MODEL)
    main([str(folder)])
    assert "Triton 26.08 on a server" in capsys.readouterr().out
    main([str(folder), "--default-model", "m"])
    assert 'on a SageMaker single-model endpoint of "m"' in capsys.readouterr().out
