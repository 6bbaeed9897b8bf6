"""The environment of the construct libraries that others publish: one for all, outside of ours.

``requirements.txt`` pins them. ``requirements.in`` has the names, and how it is compiled.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path

from members import PROJECT

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
NAMES = REQUIREMENTS.with_suffix(".in")
FOLDER = PROJECT / "build" / "rehearsal_corpora"
_SOLUTIONS = "aws-solutions-constructs-"
#: What uv prints if there is no way to the registry.
_NO_WAY = (
    "dns error",
    "Connection refused",
    "timed out",
    "error sending request",
    "Failed to fetch",
)


class UnreachableError(Exception):
    """The registry cannot be reached."""


def python() -> Path:
    """Return the Python of the environment, which is installed once for each list.

    Raises:
        UnreachableError: PyPI cannot be reached.
    """
    version = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:12]
    environment = FOLDER / f"environment-{version}"
    found = environment / "bin" / "python"
    if (environment / "complete").exists():
        return found
    _uv("venv", "--clear", "--python", sys.executable, str(environment))
    # The list is complete. Some libraries name an older schema of the cloud assembly than the
    # aws-cdk-lib that they allow, so that no set of versions satisfies them.
    _uv("pip", "install", "--no-deps", "--python", str(found), "-r", str(REQUIREMENTS))
    (environment / "complete").touch()
    return found


def distributions(corpus: str) -> list[str]:
    """The names of the packages of a corpus: ``solutions`` or ``libraries``."""
    lines = NAMES.read_text(encoding="utf-8").splitlines()
    names = [line for line in lines if re.match(r"[a-z]", line)]
    return [each for each in names if each.startswith(_SOLUTIONS) == (corpus == "solutions")]


def _uv(*arguments: str) -> None:
    uv = Path(sys.executable).with_name("uv")
    done = subprocess.run(
        [str(uv), *arguments, "--quiet"], capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return
    if any(text in done.stderr for text in _NO_WAY):
        raise UnreachableError(done.stderr[-500:])
    raise RuntimeError(f"uv {arguments[0]}: {done.stderr[-2000:]}")
