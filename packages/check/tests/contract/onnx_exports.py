"""The models of real exporters in ``onnx_exporters/``, what ONNX Runtime says of them, and what we
say.

``make onnx-corpus`` writes them. We are asked in a process in which ONNX Runtime cannot be
imported, unless it was fetched.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[4]
ORACLE = Path(__file__).parent / "onnx_exporters"
RECORDED: dict[str, Any] = json.loads((ORACLE / "verdicts.json").read_text(encoding="utf-8"))
IMAGES = [image for image in RECORDED["runtimes"] if image != "newest"]
_NOT_THE_RUNTIME = (
    "onnx-not-a-tensor"  # ONNX Runtime loads sequences and maps, Triton's backend does not
)


def said(folder: Path, image: str, *hidden: str, asking: str = "never") -> dict[str, Any]:
    """Return what ``describe`` finds in each model of a folder, without the ``hidden`` packages.

    ``asking`` is whether the ONNX Runtime of the image decides.
    """
    return _said(folder, asking, *hidden)[image]


@cache
def _said(folder: Path, asking: str, *hidden: str) -> dict[str, dict[str, Any]]:
    """Return the findings for all images from one process."""
    program = PROJECT / "dev" / "onnx_corpus" / "checker.py"
    hides = [asking, "onnxruntime", *hidden]
    command = [sys.executable, str(program), str(folder), ",".join(IMAGES), *hides]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return found


def faults(description: dict[str, Any]) -> list[str]:
    """Return the messages of the faults that ONNX Runtime has to find, too."""
    return [message for code, message in description["faults"] if code != _NOT_THE_RUNTIME]


def certain_outputs(description: dict[str, Any]) -> list[list[Any]]:
    """Return the outputs whose shapes are certain."""
    pairs = zip(description["outputs"], description["certain"], strict=True)
    return [output for output, is_certain in pairs if is_certain]


def is_refused(description: dict[str, Any]) -> bool:
    """Return whether Triton does not load the model, for any reason."""
    return bool(description["faults"])
