"""The Tab key in real shells, with the scripts of ``constructs-triton completion``."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(sys.executable).parent
#: Starts the shell without the files of the user.
SHELLS = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
}
#: Loads the script, and lets Ctrl-X print the line. The quotes keep the echo of these lines apart.
SETUP = {
    "bash": """\
eval "$(constructs-triton completion bash)"
bind -x '"\\C-x": echo "LI""NE[$READLINE_LINE]"'
""",
    "zsh": """\
autoload -U compinit; compinit -u -D
eval "$(constructs-triton completion zsh)"
show() { print -r -- LI""NE"[$BUFFER]" }; zle -N show; bindkey '^X' show
""",
}
#: What is typed before the Tab key, and the rest of the line after it.
LINES = {
    "rehe": "arse ",
    "compl": "etion ",
    "cost pri": "ces ",
    "cost prices --out": "put ",
    "cost templ": "ate.json ",
    "plan recommender imp": "ort ",
    "completion fi": "sh ",
    "check --output-format sa": "rif ",
    "check --output-format=sa": "rif ",
    "pack models --output my": r"\ archives/",
    "status digits --region ben": "",
    "nosuch ben": "",
}
_TAB, _SHOW = b"\t", b"\x18"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with files to complete, in a shell that finds the program."""
    for name in ("benchmark.csv", "template.json"):
        (tmp_path / name).touch()
    (tmp_path / "my archives").mkdir()
    monkeypatch.setenv("PATH", f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TERM", "dumb")
    return tmp_path


def _read_until(terminal: int, pattern: bytes) -> str:
    """Read from the terminal until the pattern is there, and return its group."""
    read = b""
    while (found := re.search(pattern, read)) is None:
        read += os.read(terminal, 65_536)
    return found[1].decode()


@pytest.mark.parametrize("shell", SHELLS)
def test_tab_key_completes(shell: str, folder: Path) -> None:
    """Commands, second words, options, choices and files; nothing where a value is no path."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder)
        os.execvp(shell, SHELLS[shell])
    os.write(terminal, f"{SETUP[shell]}echo REA''DY\n".encode())
    _read_until(terminal, rb"(READY)")
    completed = {}
    for words in LINES:
        os.write(terminal, f"constructs-triton {words}".encode() + _TAB + _SHOW)
        line = _read_until(terminal, rb"LINE\[(.*?)\]")
        completed[words] = line.removeprefix(f"constructs-triton {words}")
        os.write(terminal, b"\x15")  # Ctrl-U clears the line
    os.close(terminal)
    os.waitpid(process, 0)
    assert completed == LINES


@pytest.mark.parametrize("words", LINES)
def test_fish_completes(words: str, folder: Path) -> None:
    """fish completes the same words, each with its description."""
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    script = f"constructs-triton completion fish | source; complete -C 'constructs-triton {words}'"
    done = subprocess.run(
        ["fish", "-c", script], cwd=folder, capture_output=True, text=True, check=True
    )
    last = words.rsplit(maxsplit=1)[-1]
    rest = [line.partition("\t")[0].removeprefix(last) for line in done.stdout.splitlines()]
    expected = LINES[words].strip().replace("\\", "")
    assert rest == ([expected] if expected else [])
