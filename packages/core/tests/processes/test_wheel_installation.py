"""Wheels for the program's own use, whatever the current folder contains."""

from __future__ import annotations

import shutil
from importlib import util
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
from handmade_wheels import write_wheel
from hostile_checkout import write_hostile_checkout

from constructs_triton_core.processes.wheel_installation import install_wheels


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_nothing_of_the_checkout_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installer: str
) -> None:
    """The installer finds neither modules nor indexes in the current folder."""
    marker = write_hostile_checkout(tmp_path / "checkout")
    write_wheel(tmp_path / "wheels", "handmade_helper")
    for tool in ("UV", "PIP"):
        monkeypatch.setenv(f"{tool}_FIND_LINKS", str(tmp_path / "wheels"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.chdir(tmp_path / "checkout")
    monkeypatch.setattr(shutil, "which", lambda _: None)
    usual = util.find_spec

    def find(name: str, package: str | None = None) -> ModuleSpec | None:
        return usual(name, package) if name == installer else None

    monkeypatch.setattr(util, "find_spec", find)
    install_wheels(tmp_path / "installed", ("handmade_helper",))
    assert (tmp_path / "installed" / "handmade_helper.py").is_file()
    assert not marker.exists()
