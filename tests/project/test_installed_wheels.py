"""The environments of the acceptance tests have the wheels that were built last."""

from __future__ import annotations

import sys
from pathlib import Path

from handmade_wheels import write_wheel
from installed_wheels import add, install

NAME = "constructs_triton_core"


def test_rebuilt_wheel_is_installed(tmp_path: Path) -> None:
    """A wheel with the path and the version of an earlier one replaces what uv kept of it."""
    for number, content in enumerate(("OLD = 1\n", "NEW = 1\n")):
        write_wheel(tmp_path / "dist", NAME, files={f"{NAME}.py": content})
        empty = install(sys.executable, tmp_path / f"added{number}")
        add(empty, tmp_path / "dist", NAME)
        installed = install(
            sys.executable, tmp_path / f"installed{number}", NAME, dist=tmp_path / "dist"
        )
    for environment in (empty, installed):
        assert environment.run("python", "-c", f"from {NAME} import NEW") == ""
