"""Writes what a repository can contain to run code in programs that work in its folder."""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ["write_hostile_checkout"]

#: Modules of others that our programs import, or start by their names.
_PACKAGES = ("boto3", "cfnlint", "constructs_triton", "pip", "rich", "triton_model_check", "uv")
#: Python imports these when it starts, if they are on its path.
_AT_START = ("sitecustomize", "usercustomize")
_NOWHERE = "http://127.0.0.1:9/simple"
_SETTINGS = {
    "pip.conf": f"[global]\nindex-url = {_NOWHERE}\n",
    "pip.ini": f"[global]\nindex-url = {_NOWHERE}\n",
    "uv.toml": (
        f'[[index]]\nurl = "{_NOWHERE}"\ndefault = true\n[pip]\npython = "./evil"\n'
        f'index-url = "{_NOWHERE}"\n'
    ),
    "pyproject.toml": (
        '[build-system]\nrequires = []\nbuild-backend = "evil"\nbackend-path = ["."]\n'
        f'[project]\nname = "evil"\nversion = "1"\n[tool.uv]\nindex-url = "{_NOWHERE}"\n'
    ),
    "setup.cfg": f"[easy_install]\nindex_url = {_NOWHERE}\n",
    ".cfnlintrc": "append_rules: [./rules]\noutput_file: WRITTEN\n",
    "matplotlibrc": "text.usetex: True\n",
    "pyvenv.cfg": "home = .\n",
}


def write_hostile_checkout(folder: Path) -> Path:
    """Write modules, startup files and settings into a folder.

    Returns:
        The file that exists as soon as one of the modules ran.
    """
    marker = folder / "RAN"
    code = f"open({str(marker)!r}, 'a').write('a module of the checkout ran\\n')\n"
    folder.mkdir(parents=True, exist_ok=True)
    public = {name for name in sys.stdlib_module_names if not name.startswith("_")}
    for name in sorted({*public, *_PACKAGES, *_AT_START, "evil", "conftest"}):
        (folder / f"{name}.py").write_text(code)
    (folder / "rules").mkdir(exist_ok=True)
    (folder / "rules" / "evil.py").write_text(code)
    (folder / "evil.pth").write_text(f"import sys; {code}")
    program = folder / "evil"
    program.write_text(f"#!/bin/sh\necho evil >> '{marker}'\n")
    program.chmod(0o755)
    for name, text in _SETTINGS.items():
        (folder / name).write_text(text)
    return marker
