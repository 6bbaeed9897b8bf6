"""A program in place of docker or podman, which records how it is called."""

from __future__ import annotations

from pathlib import Path

import pytest

_HEAD = '#!/bin/sh\necho "$*" >> "{calls}"\n'


class FakeEngine:
    """Puts a shell script with the engine's name first on PATH."""

    def __init__(
        self, folder: Path, patch: pytest.MonkeyPatch, script: str, name: str = "podman"
    ) -> None:
        self._calls = folder / "calls"
        program = folder / "bin" / name
        program.parent.mkdir()
        program.write_text(_HEAD.format(calls=self._calls) + script)
        program.chmod(0o755)
        patch.setenv("PATH", str(program.parent), prepend=":")

    @property
    def calls(self) -> list[str]:
        """The arguments of each call."""
        return self._calls.read_text().splitlines() if self._calls.exists() else []
