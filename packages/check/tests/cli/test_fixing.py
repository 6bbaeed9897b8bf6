"""``check --fix``, ``--diff`` and ``--unsafe-fixes``: what they write,
and what they leave alone.
"""

from __future__ import annotations

import json
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


def test_link_out_of_the_repository_is_not_followed(config: Path, tmp_path: Path) -> None:
    """A file of another project remains as it is; a link within the repository remains a link."""
    outside = config.rename(tmp_path / "outside.pbtxt")
    config.symlink_to(outside)
    assert _check("--fix") == 1
    assert outside.read_text(encoding="utf-8") == SAFE
    config.unlink()
    inside = outside.rename(config.with_name("real.pbtxt"))
    config.symlink_to(inside.name)
    assert _check("--fix") == 0
    assert config.is_symlink()
    assert inside.read_text(encoding="utf-8") == HEAD


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
