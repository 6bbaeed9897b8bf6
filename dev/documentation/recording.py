"""Records commands in a new project, and writes them as a moving picture: ``make recording``.

It runs the commands, and the picture shows what they print. No package on PyPI does this for light
and dark pages: rich draws single frames, termtosvg is no longer maintained, and ptyreel 0.3 has one
color scheme for each file.
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from documentation.console import PROJECT, Console, folded
from documentation.moving_picture import COLUMNS, Line, Step, moving_picture

PICTURE = PROJECT / "docs" / "images" / "check.svg"
TITLE = "An error in config.pbtxt is found, fixed, and the fixed models are synthesized"
#: The mistake is the one that README.md describes.
PREPARATION = (
    "constructs-triton project new . --example digits",
    "sed -i '0,/TYPE_FP32/s//FP32/' models/classifier/config.pbtxt",
)
#: The commands of the picture, each with its exit code.
COMMANDS = {
    "constructs-triton check models": 1,
    "constructs-triton check models --fix --unsafe-fixes": 0,
    "cdk synth --quiet": 0,
    r"grep -ho 'AWS::SageMaker::\w*' cdk.out/*.template.json": 0,
}
#: Classes of the picture for the codes of a terminal: a code is ignored if it is not one of these.
STYLES = {"1": "bold", "2": "dim", "31": "red"}
_STYLE = re.compile(r"\x1b\[([0-9;]*)m")
#: Codes that hide and show the cursor, or move it.
_OTHER_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-ln-z]")


def recorded() -> list[Step]:
    """Run the commands in a new project, and return what they print."""
    console = Console(folder="shop")
    try:
        for command in PREPARATION:
            console.prepare(command)

        steps = []
        for command, status in COMMANDS.items():
            output = _printed(command, status, console.folder, console.environment)
            steps.append(Step(command, _lines(output)))
        return steps
    finally:
        console.close()


def _printed(command: str, status: int, folder: Path, environment: Mapping[str, str]) -> str:
    """Run a command, and return what it prints in a terminal, with the codes of its styles."""
    terminal, output = pty.openpty()
    process = subprocess.Popen(
        command,
        shell=True,
        cwd=folder,
        env=_with_colors(environment),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
    )
    os.close(output)
    printed = _read(terminal)

    code = process.wait()
    if code != status:
        raise RuntimeError(f"{command}: exit code {code}\n{printed}")
    return printed


def _with_colors(environment: Mapping[str, str]) -> dict[str, str]:
    """Let programs print their styles, but not what differs from run to run."""
    colored = {name: value for name, value in environment.items() if name != "NO_COLOR"}
    return {
        **colored,
        "TERM": "xterm",
        # rich draws a spinner in many frames.
        "TTY_INTERACTIVE": "0",
        # In a terminal, the CDK asks its registry for a newer version and for notices.
        "CDK_DISABLE_VERSION_CHECK": "1",
        "CDK_NOTICES": "false",
    }


def _read(terminal: int) -> str:
    """Read a terminal until the last program that writes to it has ended."""
    printed = b""
    with open(terminal, "rb", buffering=0) as reader:
        while True:
            try:
                part = reader.read(4096)
            except OSError:  # Linux reports the end of a terminal as an error (EIO)
                break
            if not part:
                break
            printed += part
    return printed.decode()


def _lines(output: str) -> list[Line]:
    """Return the printed lines as the picture shows them, without empty ones."""
    lines = []
    for text in output.splitlines():
        line = _styled(text)
        if line.text.strip():
            lines += _folded(line)
    return lines


def _styled(text: str) -> Line:
    """Return a line without the codes of the terminal, and the styles that they mean."""
    characters = ""
    styles: list[str] = []
    style = ""
    # The parts are in turn a text and the codes that apply to what follows.
    for index, part in enumerate(_STYLE.split(_OTHER_CODES.sub("", text))):
        if index % 2:
            style = " ".join(STYLES[code] for code in part.split(";") if code in STYLES)
            continue
        characters += part
        styles += [style] * len(part)
    return Line(characters, styles)


def _folded(line: Line) -> list[Line]:
    """Return the lines on which a line continues that is wider than the picture."""
    lines = []
    end = 0
    for part in folded(line.text, COLUMNS):
        words = part.lstrip()
        start = line.text.index(words, end)
        end = start + len(words)
        indent = len(part) - len(words)
        lines.append(Line(part, [""] * indent + list(line.styles[start:end])))
    return lines


if __name__ == "__main__":
    PICTURE.write_text(moving_picture(recorded(), TITLE), encoding="utf-8")
    print(f"wrote {PICTURE.relative_to(PROJECT)}, {PICTURE.stat().st_size} bytes")
