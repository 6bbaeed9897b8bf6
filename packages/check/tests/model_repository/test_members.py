"""What is archived and what is an error."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from sample_repositories import write_repository

from constructs_triton_core.errors import ArchiveError
from triton_model_check.model_repository.ignore import LeftOut
from triton_model_check.model_repository.members import collect_members

MODEL = {"m/config.pbtxt": b"", "m/1/model.py": b""}


def files_of(root: Path) -> list[str]:
    return [member.name for member in collect_members(root, ["m"]) if not member.is_directory]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_repository(tmp_path / "r", MODEL)
    return tmp_path / "r"


def test_link_inside_the_repository_becomes_a_plain_file(root: Path) -> None:
    """Links inside the repository are followed, because Triton on SageMaker
    skips linked directories.
    """
    write_repository(root, {"shared/vocabulary/words.txt": b"a"})
    (root / "m/1/vocabulary").symlink_to(root / "shared/vocabulary")
    (root / "m/1/copy.py").symlink_to("model.py")
    assert files_of(root) == [
        "m/1/copy.py",
        "m/1/model.py",
        "m/1/vocabulary/words.txt",
        "m/config.pbtxt",
    ]


def test_linked_files_may_be_outside(root: Path, tmp_path: Path) -> None:
    """A link to a listed file is read under the file's own path; other links out are refused."""
    weights = tmp_path / "net.onnx"
    weights.write_bytes(b"weights")
    (root / "m/1/model.onnx").symlink_to(weights)
    members = collect_members(root, ["m"], linked_files=[str(weights.resolve())])
    (linked,) = [member for member in members if member.name == "m/1/model.onnx"]
    assert (linked.source, linked.size) == (str(weights.resolve()), 7)
    with pytest.raises(ArchiveError, match="is a link out of the repository"):
        collect_members(root, ["m"], linked_files=[str(root)])


def link_out(root: Path) -> None:
    (root / "m/1/x").symlink_to("/etc/hostname")


def link_model_out(root: Path) -> None:
    (root / "m").rename(root.parent / "elsewhere")
    (root / "m").symlink_to(root.parent / "elsewhere")


def link_sibling(root: Path) -> None:
    """A folder whose name starts with the repository's name is outside it."""
    (root.parent / "r2").mkdir()
    (root / "m/1/x").symlink_to(root.parent / "r2")


def unix_socket(root: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(root / "m/1/x"))


def credential(root: Path) -> None:
    (root / "m/1/.env").write_bytes(b"")


def credential_folder(root: Path) -> None:
    write_repository(root, {"m/1/.aws/config": b""})


def credential_behind_link(root: Path) -> None:
    (root / ".env").write_bytes(b"")
    (root / "m/1/settings.txt").symlink_to(root / ".env")


@pytest.mark.parametrize(
    ("break_it", "path", "reason"),
    [
        (link_out, "m/1/x", "is a link out of the repository, got /etc/hostname"),
        (link_model_out, "m", "is a link out of the repository"),
        (link_sibling, "m/1/x", "is a link out of the repository"),
        (
            lambda root: (root / "m/1/x").symlink_to("absent"),
            "m/1/x",
            "is a broken link, got absent",
        ),
        (lambda root: (root / "m/1/x").symlink_to("x"), "m/1/x", "is a broken link, got x"),
        (
            lambda root: (root / "m/1/x").symlink_to(root / "m"),
            "m/1/x",
            "is a link to a folder above itself",
        ),
        (lambda root: os.mkfifo(root / "m/1/x"), "m/1/x", "cannot be archived, got a named pipe"),
        (unix_socket, "m/1/x", "cannot be archived, got a socket"),
        (
            lambda root: Path(os.fsdecode(bytes(root / "m/1") + b"/\xff")).touch(),
            "m/1/?",
            "has a name that is not UTF-8",
        ),
        (credential, "m/1/.env", "looks like a credential"),
        (credential_folder, "m/1/.aws", "looks like a credential"),
        (credential_behind_link, "m/1/settings.txt", "looks like a credential, got .env"),
    ],
)
def test_error_names_the_path(root: Path, break_it, path: str, reason: str) -> None:  # type: ignore[no-untyped-def]
    """The error has the path and the reason."""
    break_it(root)
    with pytest.raises(ArchiveError) as error:
        collect_members(root, ["m"])
    assert f"{root / path}: {reason}" in str(error.value)


def test_all_errors_are_reported_at_once(root: Path) -> None:
    """One run reports every problem."""
    for break_it in (link_out, credential, credential_folder):
        break_it(root)
    with pytest.raises(ArchiveError) as error:
        collect_members(root, ["m"])
    assert len(str(error.value).splitlines()) == 3


def test_device_is_an_error(root: Path) -> None:
    """The error says that the file is a device."""
    try:
        os.mknod(root / "m/1/zero", 0o20666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("only root can make a device")
    with pytest.raises(ArchiveError, match="cannot be archived, got a device"):
        collect_members(root, ["m"])


def test_files_of_tools_are_left_out(root: Path) -> None:
    """Caches and files of version control and editors are left out,
    and folders that contain nothing else.
    """
    files = ["m/.git/HEAD", "m/.DS_Store", "m/desktop.ini", "m/1/._model.py", "m/1/model.pyc"]
    files += ["m/1/__pycache__/model.cpython-311.pyc", "m/1/.ipynb_checkpoints/a.ipynb"]
    write_repository(root, dict.fromkeys([*files, "m/1/gone/__pycache__/a.pyc"], b""))
    names = [member.name for member in collect_members(root, ["m"])]
    assert names == ["m", "m/1", "m/1/model.py", "m/config.pbtxt"]


@pytest.mark.parametrize(
    ("files", "is_packed"),
    [
        ({}, True),
        ({"m/1/code.py": b""}, False),
        ({"m/1/code.py": b"", "m/1/.tritonignore": b"code.py\n"}, True),
        ({"m/1/code.py": b"", ".tritonignore": b"!*.pyc\n"}, True),
        ({"m/code.py": b""}, True),
    ],
    ids=["alone", "beside its source", "source left out", "asked for", "source elsewhere"],
)
def test_bytecode_is_packed_if_python_may_import_it(
    files: dict[str, bytes], is_packed: bool, root: Path
) -> None:
    """Python reads ``code.pyc`` only if there is no ``code.py``, so that alone it is the module."""
    write_repository(root, {**files, "m/1/code.pyc": b""})
    assert ("m/1/code.pyc" in files_of(root)) is is_packed
    assert LeftOut(root)("m/1/code.pyc") is not is_packed


def test_version_directory_is_kept_when_its_content_is_left_out(root: Path) -> None:
    """Triton requires the version directory even if it is empty."""
    write_repository(root, {"m/2/__pycache__/a.pyc": b""})
    assert "m/2" in [member.name for member in collect_members(root, ["m"], ["m/2"])]


def test_tritonignore_has_the_syntax_of_gitignore(root: Path) -> None:
    """Patterns, anchors and negation work as in gitignore,
    and take precedence over the defaults.
    """
    rules = b"*.ckpt\n!best.ckpt\n/m/notes/\n!.DS_Store\n# comment\n"
    kept = ["m/1/.DS_Store", "m/1/best.ckpt", "m/1/notes/kept.txt"]
    write_repository(root, {".tritonignore": rules})
    write_repository(root, dict.fromkeys([*kept, "m/1/a.ckpt", "m/notes/todo.txt"], b""))
    assert files_of(root) == sorted([*MODEL, *kept])


def test_tritonignore_of_a_folder_applies_below_it(root: Path) -> None:
    """The nearest file takes precedence; its patterns are relative to its folder
    and apply only there.
    """
    rules = {
        ".tritonignore": b"*.ckpt\n/m/notes/\n",
        "m/1/.tritonignore": b"!best.ckpt\n/raw\n!/ca.pem\n",
        "m/1/deep/.tritonignore": b"best.ckpt\n",
        "m/notes/.tritonignore": b"!*\n",
    }
    kept = ["m/1/best.ckpt", "m/1/ca.pem", "m/1/deep/raw", "m/raw"]
    others = ["m/best.ckpt", "m/notes/todo.txt", "m/1/other.ckpt", "m/1/raw", "m/1/deep/best.ckpt"]
    write_repository(root, {**rules, **dict.fromkeys([*kept, *others], b"")})
    assert files_of(root) == sorted([*MODEL, *kept])


def test_credential_is_archived_only_when_named(root: Path) -> None:
    """A line of ``.tritonignore`` that matches a credential leaves it out,
    or includes it with ``!``.
    """
    rules = {".tritonignore": b"/m/1/.env\n!/m/1/ca.pem\n"}
    write_repository(root, {**rules, "m/1/.env": b"", "m/1/ca.pem": b""})
    assert files_of(root) == ["m/1/ca.pem", "m/1/model.py", "m/config.pbtxt"]


@pytest.mark.parametrize("folder", ["", "m/1"])
@pytest.mark.parametrize(
    "break_it",
    [
        os.mkfifo,
        lambda path: path.write_bytes(b"\xff\xfe"),
        lambda path: path.write_text("#\n" * 10_000),
    ],
    ids=["pipe", "bytes", "long"],
)
def test_unreadable_rules_are_an_error(root: Path, folder: str, break_it) -> None:  # type: ignore[no-untyped-def]
    """A ``.tritonignore`` that is not text is an error with its path in any folder;
    it is not ignored.
    """
    break_it(root / folder / ".tritonignore")
    with pytest.raises(ArchiveError) as error:
        collect_members(root, ["m"])
    assert str(error.value).startswith(f"{root / folder / '.tritonignore'}: cannot be read")
