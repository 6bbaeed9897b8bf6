"""The lines that type checkers report in an app with users' mistakes in the
properties of endpoints.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
ACCEPTED, REJECTED = FOLDER / "accepted_app.py", FOLDER / "rejected_app.py"
PYRIGHT = ROOT / "node_modules" / "pyright" / "index.js"


def marked_lines() -> set[tuple[str, int]]:
    """The lines of the rejected file that end in a comment."""
    lines = REJECTED.read_text(encoding="utf-8").splitlines()
    return {
        (REJECTED.name, number)
        for number, line in enumerate(lines, 1)
        if re.search(r"\)  # \w", line)
    }


def run(command: list[str]) -> str:
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    ).stdout


def mypy_errors() -> set[tuple[str, int]]:
    found = run([sys.executable, "-m", "mypy", "--no-pretty", str(ACCEPTED), str(REJECTED)])
    rows = re.findall(r"^(?:.*/)?(\w+\.py):(\d+): error", found, re.MULTILINE)
    return {(name, int(line)) for name, line in rows}


def pyright_errors() -> set[tuple[str, int]]:
    config = ["--project", str(FOLDER / "pyrightconfig.json"), "--pythonpath", sys.executable]
    found = json.loads(run(["node", str(PYRIGHT), "--outputjson", *config]))
    assert found["summary"]["filesAnalyzed"] == 2
    rows = found["generalDiagnostics"]
    return {(Path(each["file"]).name, each["range"]["start"]["line"] + 1) for each in rows}
