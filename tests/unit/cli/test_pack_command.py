"""``constructs-triton pack``."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sample_repositories import ENSEMBLE_CONFIG, write_models

from constructs_triton.cli import main
from triton_model_check import model_repository
from triton_model_check.model_repository import pack
from triton_model_check.model_repository.archive_inspection import inspect_archive


@pytest.fixture
def repository(tmp_path: Path, own_cache: Path) -> Path:
    """An ensemble with its step, and another model."""
    root = write_models(tmp_path / "models", "net", "other")
    (root / "both").mkdir()
    (root / "both" / "config.pbtxt").write_bytes(ENSEMBLE_CONFIG)
    return root


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], {"both": ("both", "net"), "other": ("other",)}),
        (["--model", "net"], {"net": ("net",)}),
        (["--model", "both"], {"both": ("both", "net")}),
        (["--one"], {"models": ("both", "net", "other")}),
        (["--one", "--model", "other"], {"other": ("other",)}),
        (["--called-models", "net=other"], {"both": ("both", "net", "other")}),
    ],
)
def test_archives_and_their_models(
    repository: Path,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    expected: dict[str, tuple[str, ...]],
) -> None:
    """An ensemble is packed with its steps, every other model alone, or all in one archive."""
    out = repository.parent / "out"
    assert main(["pack", str(repository), "-o", str(out), "--json", *options]) == 0
    archives = json.loads(capsys.readouterr().out)["archives"]
    assert {row["name"]: inspect_archive(row["path"]).models for row in archives} == expected
    assert all(inspect_archive(row["path"]).digest == row["digest"] for row in archives)
    assert {path.name for path in out.iterdir()} == {f"{name}.tar.gz" for name in expected}


def test_archive_in_place_of_the_folder_is_an_error(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``-o model.tar.gz`` is an error that shows the folder, and creates no folder of that name."""
    out = repository.parent / "model.tar.gz"
    assert main(["pack", str(repository), "-o", str(out)]) == 2
    assert (
        f'--output: must be a folder, got "{out}"; pass -o {out.parent},' in capsys.readouterr().err
    )
    assert not out.exists()
    assert main(["pack", str(repository), "-o", str(out.parent)]) == 0


def test_lines_name_digest_and_archive(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without ``--json`` each archive is one line, which is not one that `sha256sum -c` reads."""
    assert main(["pack", str(repository), "-o", str(repository.parent), "--model", "other"]) == 0
    path = repository.parent / "other.tar.gz"
    assert capsys.readouterr().out == f"{path}  content {inspect_archive(path).digest}\n"


def test_a_model_that_triton_rejects_is_not_packed(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All errors are printed and nothing is written, unless ``--no-check`` is given."""
    (repository / "net/config.pbtxt").write_bytes(b"max_batch_size: many\n")
    shutil.rmtree(repository / "other/1")
    out = repository.parent / "out"
    assert main(["pack", str(repository), "-o", str(out)]) == 1
    printed = capsys.readouterr().err
    assert "net/config.pbtxt" in printed
    assert "other: error[layout-no-version]: at least one version must be available" in printed
    assert not out.exists()
    assert main(["pack", str(repository), "-o", str(out), "--no-check"]) == 0
    assert out.exists()


@pytest.mark.parametrize("options", [["--model", "absent"], ["--no-check", "--model", "absent"]])
def test_unknown_model_is_an_error(
    repository: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    """The name of a model that does not exist is printed on standard error, with exit code 2."""
    assert main(["pack", str(repository), "-o", str(repository.parent / "out"), *options]) == 2
    assert '"absent"' in capsys.readouterr().err.replace("'", '"')


def test_help_loads_nothing_heavy(repository: Path) -> None:
    """``--help`` loads no compression, schema or terminal library."""
    code = (
        "import sys; from constructs_triton.cli import main\ntry: main(['pack', '--help'])\nexcept "
        "SystemExit: pass\nprint([name for name in ('isal', 'google.protobuf', 'rich', 'grpc', "
        "'jsii') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_pack_never_loads_grpc(repository: Path) -> None:
    """Packing, with the check, does not load grpc, aws_cdk or numpy."""
    code = (
        "import sys; from constructs_triton.cli import main\nstatus = main(['pack', "
        f"{str(repository)!r}, '-o', {str(repository.parent / 'out')!r}])\nprint(status, [name for "
        "name in ('grpc', 'jsii', 'aws_cdk', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 []"


@pytest.mark.parametrize(
    ("options", "level", "use_cache"),
    [
        ([], 2, True),
        (["--level", "0"], 0, True),
        (["--level", "3"], 3, True),
        (["--no-cache"], 2, False),
    ],
)
def test_level_and_cache_reach_the_packing(
    repository: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    level: int,
    use_cache: bool,
) -> None:
    """The compression level, and whether the cache is used."""
    found: list[tuple[int, bool]] = []

    def noting(*arguments: Any, compression_level: int, use_cache: bool, **more: Any) -> Any:
        found.append((compression_level, use_cache))
        return pack(*arguments, compression_level=compression_level, use_cache=use_cache, **more)

    monkeypatch.setattr(model_repository, "pack", noting)
    words = [
        "pack",
        str(repository),
        "-o",
        str(repository.parent / "out"),
        "--model",
        "net",
        *options,
    ]
    assert main(words) == 0
    assert found == [(level, use_cache)]


@pytest.mark.parametrize("level", ["-1", "4", "fast"])
def test_a_wrong_level_is_reported(
    repository: Path, capsys: pytest.CaptureFixture[str], level: str
) -> None:
    """Exit code 2 and the choices."""
    with pytest.raises(SystemExit) as ended:
        main(["pack", str(repository), "-o", "out", f"--level={level}"])
    assert ended.value.code == 2
    assert "argument --level" in capsys.readouterr().err


def test_an_empty_folder_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """There is nothing to pack; the error says what to pass."""
    assert main(["pack", str(tmp_path), "-o", str(tmp_path / "out"), "--no-check"]) == 2
    assert (
        "contains no model; pass a folder with one subfolder per model" in capsys.readouterr().err
    )
