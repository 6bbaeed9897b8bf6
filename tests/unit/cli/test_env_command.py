"""``constructs-triton env``."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest
from check_examples.python_backend import packed
from handmade_wheels import write_wheel, write_wheels

from constructs_triton.cli import main
from constructs_triton_tools.cli import env


@pytest.fixture
def project(tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with requirements and wheels."""
    write_wheels(tmp_path / "wheels")
    (tmp_path / "requirements.txt").write_text("pure\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))  # without what others have downloaded
    return tmp_path


def test_a_build_prints_its_files(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The lock file and the archive are printed, and whether they are new;
    the options are needed once.
    """
    words = ["env", "build", "requirements.txt", "-o", "models/m/env.tar"]
    assert main([*words, "--find-links", "wheels"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "requirements.py3.12.lock: written, 2 packages",
        "models/m/env.tar: Python 3.12 on x86_64-manylinux_2_39, 0.0 MB unpacked",
    ]
    assert main(words) == 0
    assert capsys.readouterr().out.splitlines() == [
        "requirements.py3.12.lock: unchanged, 2 packages",
        "models/m/env.tar: Python 3.12 on x86_64-manylinux_2_39, 0.0 MB unpacked, from the cache",
    ]
    with tarfile.open(project / "models" / "m" / "env.tar") as tar:
        assert "bin/activate" in tar.getnames()


def test_json(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The answer and a failure are JSON."""
    assert main(["env", "build", "requirements.txt", "--find-links", "wheels", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["packages"] == {"helper": "1.5", "pure": "1.0"}
    assert (answer["python"], answer["is_new"], Path(answer["archive"]).exists()) == (
        "3.12",
        True,
        True,
    )
    assert main(["env", "build", "absent.txt", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"].startswith("absent.txt: cannot be read")


def test_extras_are_kept_in_the_lock_file(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second build without options has the same extras, and other ones replace them."""
    (project / "pyproject.toml").write_text(
        '[project]\nname = "app"\ndependencies = ["helper"]\n'
        '[project.optional-dependencies]\nmore = ["pure"]\n'
    )
    options = [["--extra", "more", "--find-links", "wheels"], []]
    for more in options:
        assert main(["env", "build", "pyproject.toml", *more]) == 0
        assert ", 2 packages" in capsys.readouterr().out
    assert main(["env", "build", "pyproject.toml", "--extra", "morex"]) == 2
    assert 'has no extra "morex"; did you mean "more"?' in capsys.readouterr().err


def test_indexes_are_options_of_uv(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both kinds of index reach uv, which does not connect here."""
    words = ["--index", "http://127.0.0.1:9/own", "--default-index", "http://127.0.0.1:9/all"]
    assert main(["env", "build", "requirements.txt", *words]) == 2
    error = capsys.readouterr().err
    assert "requirements.txt: uv found no packages for Python 3.12" in error
    assert "connect to the network, or set --index or --find-links" in error


def test_a_large_environment_suggests_an_image(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above the limit, a note names the alternative."""
    monkeypatch.setattr(env, "_LARGE_BYTES", 1)
    assert main(["env", "build", "requirements.txt", "--find-links", "wheels"]) == 0
    assert "see TritonImage.from_asset" in capsys.readouterr().err


def test_show_prints_packages_with_licenses(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The license is that of the metadata: an expression, a short text or a classifier."""
    licenses = {
        "expression": "License-Expression: MIT",
        "text": "License: BSD",
        "none": "License: UNKNOWN\n more",
    }
    licenses["classifier"] = "Classifier: License :: OSI Approved :: Apache Software License"
    for name, line in licenses.items():
        write_wheel(
            project / "wheels", name, files={f"{name}.libs/libgomp.so.1": ""}, metadata=line
        )
    (project / "requirements.txt").write_text("\n".join(licenses))
    assert (
        main(["env", "build", "requirements.txt", "-o", "env.tar.gz", "--find-links", "wheels"])
        == 0
    )
    lock = (project / "requirements.py3.12.lock").read_bytes()
    capsys.readouterr()
    assert main(["env", "show", "env.tar.gz", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    found = {each["name"]: each["license"] for each in answer["packages"]}
    assert found == {
        "classifier": "Apache Software License",
        "expression": "MIT",
        "none": "",
        "text": "BSD",
    }
    assert answer["bundled_libraries"]["text.libs"] == ["libgomp.so.1"]
    assert (answer["python"], answer["platform"]) == ("3.12", "x86_64-manylinux_2_39")
    assert answer["lock_sha256"] == hashlib.sha256(lock).hexdigest()
    assert main(["env", "show", "env.tar.gz"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == f"lock:  sha256 {answer['lock_sha256']}"
    assert [each.split() for each in lines if each.startswith("none")] == [
        ["none", "1.0", "not", "stated"]
    ]
    assert "  text.libs: libgomp.so.1" in lines


def test_show_refuses_what_is_no_environment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An archive without packages or a damaged one is wrong;
    a path that does not exist was not looked at.
    """
    (tmp_path / "empty.tar").write_bytes(packed("model/config.pbtxt"))
    (tmp_path / "text.tar").write_bytes(b"no archive")
    with tarfile.open(tmp_path / "large.tar", "w") as archive:
        member = tarfile.TarInfo("lib/python3.12/site-packages/a-1.dist-info/METADATA")
        member.size = (1 << 20) + 1
        archive.addfile(member, io.BytesIO(bytes(member.size)))
    for name, code, message in (
        (
            "empty.tar",
            1,
            "contains no Python packages; pass an archive of `constructs-triton env build`",
        ),
        ("text.tar", 1, "cannot be read"),
        (
            "large.tar",
            1,
            "METADATA must have at most 1048576 bytes, got 1048577; build the environment again",
        ),
        ("absent.tar", 2, "does not exist; pass an archive of `constructs-triton env build`"),
        ("", 2, "is a folder; pass an archive of `constructs-triton env build`"),
    ):
        assert main(["env", "show", str(tmp_path / name)]) == code
        assert message in capsys.readouterr().err
