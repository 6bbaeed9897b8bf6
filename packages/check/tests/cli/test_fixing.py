"""``check --fix``, ``--diff`` and ``--unsafe-fixes``: what they write,
and what they leave alone.
"""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from check_examples import write
from check_examples.repositories import HEAD, one

from triton_model_check.cli import main

SAFE = HEAD.replace("backend", "platform").replace(": 8", ": +8")
UNSAFE = HEAD.replace("TYPE_FP32", "FP32", 1)


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The configuration of the only model of the repository ``models``, in the working folder."""
    monkeypatch.chdir(tmp_path)
    return write(one(SAFE), tmp_path / "models") / "m" / "config.pbtxt"


def _check(*flags: str) -> int:
    return main(["check", "models", *flags])


def test_fix_writes_all_rounds_and_reports_what_remains(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A fault hides the next problem, which is fixed too; a second run changes nothing."""
    assert _check("--fix") == 0
    assert config.read_text(encoding="utf-8") == HEAD
    assert capsys.readouterr().err == "fixed 2 problems in 1 file\n"
    before = config.stat().st_mtime_ns
    assert _check("--fix") == 0
    assert config.stat().st_mtime_ns == before
    assert capsys.readouterr().err == "fixed 0 problems in 0 files\n"


def test_only_unsafe_fixes_guess(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``--fix`` leaves "did you mean" alone and says so; with ``--unsafe-fixes`` it is written."""
    config.write_text(UNSAFE, encoding="utf-8")
    assert _check("--fix") == 1
    assert config.read_text(encoding="utf-8") == UNSAFE
    assert "  1 fixable with --fix --unsafe-fixes\n" in capsys.readouterr().out
    assert _check("--fix", "--unsafe-fixes") == 0
    assert config.read_text(encoding="utf-8") == HEAD


def test_diff_prints_what_fix_would_write(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``--diff`` prints the result of all rounds and writes nothing; 1 is a difference, 0 none."""
    assert _check("--diff", "--fix") == 1
    printed = capsys.readouterr().out.splitlines()
    assert printed[:2] == ["--- models/m/config.pbtxt", "+++ models/m/config.pbtxt"]
    assert [line for line in printed if line[0] == "+"][1:] == [
        '+backend: "python"',
        "+max_batch_size: 8",
    ]
    assert config.read_text(encoding="utf-8") == SAFE
    config.write_text(UNSAFE, encoding="utf-8")
    assert _check("--diff") == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_file_keeps_mode_encoding_and_line_ends(config: Path, encoding: str) -> None:
    """Only the places of the fixes change, whatever the file is like."""
    content = f"# é\n{SAFE}".replace("\n", "\r\n").encode(encoding)
    config.write_bytes(content)
    config.chmod(0o640)
    _check("--fix")
    assert config.read_bytes() == content.replace(b"platform", b"backend").replace(b"+8", b"8")
    assert config.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in config.parent.iterdir()) == ["1", "config.pbtxt"]


def test_link_out_of_the_repository_is_not_followed(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file of another project remains as it is, with the reason; a link within the
    repository remains a link.
    """
    outside = config.rename(tmp_path / "outside.pbtxt")
    config.symlink_to(outside)
    assert _check("--fix") == 1
    assert outside.read_text(encoding="utf-8") == SAFE
    printed = capsys.readouterr().out
    assert "the file is outside of this repository, so --fix leaves it alone" in printed
    assert "fixable" not in printed
    config.unlink()
    inside = outside.rename(config.with_name("real.pbtxt"))
    config.symlink_to(inside.name)
    assert _check("--fix") == 0
    assert config.is_symlink()
    assert inside.read_text(encoding="utf-8") == HEAD


def _relative(config: Path, _: Path) -> None:
    config.rename(config.with_name("real.pbtxt"))
    config.symlink_to("real.pbtxt")


def _absolute(config: Path, _: Path) -> None:
    config.symlink_to(config.rename(config.with_name("real.pbtxt")))


def _chain(config: Path, outside: Path) -> None:
    _absolute(config, outside)
    config.rename(config.with_name("second"))
    config.symlink_to("second")


def _through_the_outside(config: Path, outside: Path) -> None:
    """A link outside of the repository leads back into it."""
    (outside / "link").symlink_to(config.rename(config.with_name("real.pbtxt")))
    config.symlink_to(outside / "link")


def _elsewhere(config: Path, outside: Path) -> None:
    config.symlink_to(config.rename(outside / "other.pbtxt"))


def _folder(config: Path, _: Path) -> None:
    """Two models are one folder."""
    (config.parents[1] / "n").symlink_to(config.parent)


def _folder_elsewhere(config: Path, outside: Path) -> None:
    config.parent.symlink_to(config.parent.rename(outside / "m"))


def _dangling(config: Path, _: Path) -> None:
    (config.parent / "labels.txt").symlink_to("nothing")


def _cycle(config: Path, _: Path) -> None:
    (config.parent / "labels.txt").symlink_to("labels.txt")


def _hard_link(config: Path, outside: Path) -> None:
    (outside / "hard.pbtxt").hardlink_to(config)


def _hard_links(config: Path, _: Path) -> None:
    (config.parent / "hard.pbtxt").hardlink_to(config)


def _named_pipe(config: Path, _: Path) -> None:
    os.mkfifo(config.with_name(".config.pbtxt.partial"))


def _socket(config: Path, _: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(config.with_name("1") / "socket"))


def _device(config: Path, _: Path) -> None:
    config.with_name("labels.txt").symlink_to("/dev/zero")


def _partial(config: Path, outside: Path) -> None:
    """The name that the command once used for its drafts leads to a file of the user."""
    config.with_name(".config.pbtxt.partial").symlink_to(outside / "bashrc")


@pytest.mark.parametrize(
    "put",
    [
        _relative,
        _absolute,
        _chain,
        _through_the_outside,
        _elsewhere,
        _folder,
        _folder_elsewhere,
        _dangling,
        _cycle,
        _hard_link,
        _hard_links,
        _named_pipe,
        _socket,
        _device,
        _partial,
    ],
)
def test_diff_says_what_fix_does_with_each_kind_of_link(
    config: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    put: Callable[[Path, Path], None],
) -> None:
    """``--diff`` changes nothing, ``--fix`` exactly the files that ``--diff`` named, and neither
    writes outside of the repository.
    """
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "bashrc").write_text("precious")
    put(config, outside)

    before = _contents(tmp_path)
    _check("--diff")
    assert _contents(tmp_path) == before

    difference = capsys.readouterr().out.splitlines()
    named = {line.split()[1] for line in difference if line.startswith("+++ ")}
    added = [line[1:] for line in difference if re.match(r"\+(?!\+\+)", line)]

    _check("--fix")
    after = _contents(tmp_path)
    assert before.keys() == after.keys()
    assert named == {path for path in after if after[path] != before[path]}
    assert all(path.startswith("models/") for path in named)
    written = "".join(after[path] for path in named)
    assert all(line in written for line in added)


def _contents(root: Path) -> dict[str, str]:
    """The content of each file and the target of each link, by path."""
    found = {}
    for folder, folders, files in os.walk(root):
        for path in (Path(folder, name) for name in (*folders, *files)):
            name = path.relative_to(root).as_posix()
            if path.is_symlink():
                found[name] = str(path.readlink())
            elif path.is_file():
                found[name] = f"{path.stat().st_mode} {path.read_text(encoding='utf-8')}"
            else:
                found[name] = str(path.stat().st_mode)
    return found


def test_report_is_not_written_through_a_link(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file of the checkout with the name of the report stops the command with one sentence."""
    assert config.is_file()
    (tmp_path / "victim").write_text("precious")
    for name in ("report.sarif", "report.sarif.partial"):
        (tmp_path / name).symlink_to("victim")
    flags = ("--output-format", "sarif", "--output-file", "report.sarif")
    assert _check(*flags) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "report.sarif" in line
    assert "a link instead of a file" in line
    (tmp_path / "report.sarif").unlink()
    assert _check(*flags) == 1
    assert (tmp_path / "victim").read_text() == "precious"


def test_read_only_file_stops_before_anything_is_written(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error names the file, the exit code is 2, and no other file has changed."""
    write({f"models/n/{name[2:]}": text for name, text in one(SAFE).items()}, config.parents[2])
    locked = config.parents[1] / "n" / "config.pbtxt"
    locked.chmod(0o440)
    assert _check("--fix") == 2
    assert (
        f"{locked}: cannot be fixed: it is read-only; make it writable" in capsys.readouterr().err
    )
    assert config.read_text(encoding="utf-8") == SAFE


def test_json_has_the_edits(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An editor can apply the fix of a finding by itself: offsets of characters,
    and the new text.
    """
    _check("--json")
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    start = SAFE.index("+8")
    edit = {"path": "m/config.pbtxt", "start": start, "end": start + 1, "text": ""}
    assert finding["fix"] == {"safe": True, "edits": [edit]}
