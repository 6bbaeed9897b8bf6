"""What is read from requirements.txt and pyproject.toml, without uv."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from constructs_triton_core.errors import InvalidValueError
from triton_model_check.artifacts.environments.lock import lock_path, read_lock, read_lock_file
from triton_model_check.artifacts.environments.requirements import read_requirements
from triton_model_check.artifacts.environments.target import image_target

HASH = "--hash=sha256:" + "0" * 64
LOCK = (
    "# constructs-triton environment lock 1; "
    "`constructs-triton env build` writes it, keep it in git\n"
)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_nested_files_are_read_once(tmp_path: Path) -> None:
    """Files of -r and -c are read from their place, comments are left out, and lines are joined."""
    write(
        tmp_path / "more" / "base.txt", "-r ../requirements.txt\nnumpy\n--constraint=limits.txt\n"
    )
    write(tmp_path / "more" / "limits.txt", "numpy<2\n")
    text = (
        "\ufeff# all\nregex ; python_version>'3' \\\n   "
        f"{HASH}  # why\n\n-rmore/base.txt\nhttp#1 @ x\n"
    )
    found = read_requirements(write(tmp_path / "requirements.txt", text))
    assert found.lines == (f"regex ; python_version>'3' {HASH}", "numpy", "http#1 @ x")
    assert found.constraints == ("numpy<2",)


def test_digest_depends_on_the_requirements_alone(tmp_path: Path) -> None:
    """Order of comments and blank lines do not matter; a constraint does."""
    write(tmp_path / "limits.txt", "a<2\n")
    texts = ["a\nb\n", "# x\na\n\nb # y\n", "a\nb\n-c limits.txt\n"]
    digests = [
        read_requirements(write(tmp_path / f"{i}.txt", each)).digest for i, each in enumerate(texts)
    ]
    assert (digests[0] == digests[1], digests[0] == digests[2]) == (True, False)


def test_password_in_a_variable_is_accepted(tmp_path: Path) -> None:
    """Only the name of the variable is written into the lock file."""
    line = "--index-url https://${USER}:${TOKEN}@host/simple"
    found = read_requirements(write(tmp_path / "requirements.txt", f"{line}\na\n"))
    assert found.lines == (line, "a")


def test_files_that_are_not_read(tmp_path: Path) -> None:
    """A chain of files ends, and a binary file is reported."""
    (tmp_path / "r.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidValueError, match="is not utf-8"):
        read_requirements(tmp_path / "r.txt")
    for index in range(60):
        write(tmp_path / f"{index}.txt", f"-r {index + 1}.txt\n")
    with pytest.raises(InvalidValueError, match="more than 50 files"):
        read_requirements(tmp_path / "0.txt")


PASSWORD = "--index-url https://me:secret@host/simple\na\n"
ONE, OF_A_PATH = '[project]\ndependencies = ["A>1"]\n', '[tool.uv.sources]\na = { path = "x" }\n'


@pytest.mark.parametrize(
    ("name", "text", "extras", "message"),
    [
        (
            "requirements.txt",
            "# nothing\n--no-index\n",
            (),
            "contains no requirement; add a package",
        ),
        (
            "requirements.txt",
            "-e .\n",
            (),
            "editable packages cannot be packed, got '-e .'; build a wheel",
        ),
        ("requirements.txt", PASSWORD, (), r"contains a password.*https://\*\*\*@host"),
        ("requirements.txt", "-r absent.txt\n", (), r"absent\.txt: cannot be read \(no such file"),
        (
            "requirements.txt",
            "a\n",
            ("x",),
            r"extras need pyproject.toml or uv.lock.*httpx\[http2\]",
        ),
        ("pyproject.toml", "[project", (), "is not valid TOML"),
        ("pyproject.toml", "[tool.x]\n", (), r"has no table \[project\]"),
        (
            "pyproject.toml",
            '[project]\ndependencies = "a"\n',
            (),
            "dependencies must be a list of strings",
        ),
        (
            "pyproject.toml",
            '[project]\ndynamic = ["dependencies"]\n',
            (),
            "run `uv lock`, and pass uv.lock",
        ),
        ("pyproject.toml", ONE, ("gpu",), 'has no extra "gpu"; use one of nothing'),
        ("pyproject.toml", f"{ONE}{OF_A_PATH}", (), 'has "a", which only uv resolves'),
    ],
)
def test_files_that_are_refused(
    name: str, text: str, extras: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    """The message names the file and says what to pass instead; a password is not repeated."""
    with pytest.raises(InvalidValueError, match=message) as error:
        read_requirements(write(tmp_path / name, text), extras)
    assert "secret" not in str(error.value)


def test_targets_of_images() -> None:
    """An image has its Python, platform and NumPy."""
    new, old = image_target("26.05"), image_target("24.09")
    assert (new.python, new.platform, new.must_keep_numpy) == (
        "3.12",
        "x86_64-manylinux_2_39",
        False,
    )
    assert (old.python, old.platform, old.must_keep_numpy) == (
        "3.10",
        "x86_64-manylinux_2_35",
        True,
    )
    with pytest.raises(
        InvalidValueError, match=r'its Python is not known, got "30.01"; use one of 26\.05'
    ):
        image_target("30.01")


@pytest.mark.parametrize(
    "content",
    [
        *("", "numpy==1\n", "# constructs-triton environment lock 2; x\n# 1\n"),
        *("{lock}# []\n", '{lock}# {{"a": 1}}\n', f"{{lock}}# {'[' * 100_000}\n"),
    ],
)
def test_files_that_are_no_lock_files(content: str, tmp_path: Path) -> None:
    """A file of another program or version is not used."""
    path = write(
        lock_path(tmp_path / "requirements.txt", image_target()), content.format(lock=LOCK)
    )
    with pytest.raises(
        InvalidValueError, match=r"requirements\.py3\.12\.lock: is not a lock file.*delete it"
    ):
        read_lock_file(path)


def test_lock_file_that_cannot_be_read(tmp_path: Path) -> None:
    """A folder in its place is reported."""
    path = lock_path(tmp_path / "requirements.txt", image_target())
    path.mkdir()
    with pytest.raises(InvalidValueError, match=r"cannot be read .*; change its permissions"):
        read_lock_file(path)


@pytest.mark.parametrize(
    ("name", "value"), [("options", ["--config-file=/x"]), ("python", 3), ("extras", "a")]
)
def test_a_header_with_other_values_is_refused(name: str, value: object, tmp_path: Path) -> None:
    """The lock file of another person's archive cannot pass any option to uv."""
    lists: dict[str, object] = {
        key: [] for key in ("requirements", "constraints", "options", "extras")
    }
    header = {**dict.fromkeys(("python", "platform", "digest"), "x"), **lists}
    assert read_lock(f"{LOCK}# {json.dumps(header)}\n".encode(), "lock").python == "x"
    with pytest.raises(InvalidValueError, match="is not a lock file"):
        read_lock(f"{LOCK}# {json.dumps({**header, name: value})}\n".encode(), "lock")
