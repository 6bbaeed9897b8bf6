"""Writes wheels without a build program, so that environments are built without a network."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path


def write_wheel(
    folder: Path,
    name: str,
    version: str = "1.0",
    *,
    files: Mapping[str, str] | None = None,
    requires: Sequence[str] = (),
    tag: str = "py3-none-any",
    metadata: str = "",
) -> Path:
    """Write a wheel of a package with one module, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    information = f"{name}-{version}.dist-info"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [metadata] if metadata else []
    lines += [f"Requires-Dist: {each}" for each in requires]
    content = {
        f"{name}.py": f"VERSION = {version!r}\n",
        **(files or {}),
        f"{information}/METADATA": "\n".join([*lines, ""]),
        f"{information}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    rows = [f"{path},sha256={_hash(text)},{len(text.encode())}" for path, text in content.items()]
    content[f"{information}/RECORD"] = "\n".join([*rows, f"{information}/RECORD,,", ""])
    path = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member, text in content.items():
            archive.writestr(zipfile.ZipInfo(member), text)
    return path


def _hash(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def write_wheels(folder: Path) -> None:
    """Write ``pure``, which needs ``helper``, and contains data,
    a script and a part of a namespace.
    """
    information = "pure-1.0.dist-info"
    files = {
        "pure_data/words.txt": "one\n",
        "shared_namespace/pure_part/__init__.py": "",
        "pure-1.0.data/scripts/pure-script": "#!python\nprint('ran')\n",
        "pure-1.0.data/data/share/pure/note.txt": "note\n",
        f"{information}/entry_points.txt": "[console_scripts]\npure-command = pure:main\n",
    }
    write_wheel(folder, "pure", files=files, requires=["helper>=1"])
    write_wheel(folder, "helper", "1.0")
    write_wheel(folder, "helper", "1.5")
