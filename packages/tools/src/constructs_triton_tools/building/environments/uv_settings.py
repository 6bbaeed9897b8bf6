"""Settings of uv that would let it build packages, whose code would run.

uv takes settings from the nearest ``uv.toml``, or ``pyproject.toml`` with a table ``tool.uv``, in
the folder where it starts or above it ("Configuration files" of its documentation). Those about
indexes are wanted. But uv prefers ``no-binary`` of a package to ``--only-binary :all:`` of the
command line (observed with 0.13.8), and builds the package.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from triton_model_check.untrusted.toml_files import TomlFile

__all__ = ["refuse_builds"]

_BUILDS = ("no-binary", "no-binary-package")
_ONLY_WHEELS = "only-binary"
_NONE = ":none:"


def refuse_builds(folder: Path) -> None:
    """Check the settings that uv finds when it starts in a folder.

    Raises:
        InvalidValueError: a setting lets uv build packages, or the file cannot be read.
    """
    found = _nearest(folder.absolute())
    if found is None:
        return
    file, place, settings = found
    for keys, name, value in _settings(place, settings):
        is_reset = name == _ONLY_WHEELS and isinstance(value, list) and _NONE in value
        if is_reset or (name in _BUILDS and value):
            raise file.error(
                [*keys, name],
                "lets uv build packages, which runs their code; remove it, build wheels of these "
                "packages with `uv build --wheel`, and pass their folder with --find-links",
            )


def _nearest(folder: Path) -> tuple[TomlFile, tuple[str, ...], Mapping[str, Any]] | None:
    """Return the file that uv uses, the keys of the table of its settings, and the table."""
    for directory in (folder, *folder.parents):
        if (directory / "uv.toml").is_file():
            file = TomlFile.read(directory / "uv.toml")
            return file, (), file.document
        if (directory / "pyproject.toml").is_file():
            file = TomlFile.read(directory / "pyproject.toml")
            tools = file.document.get("tool")
            settings = tools.get("uv") if isinstance(tools, dict) else None
            if isinstance(settings, dict):
                return file, ("tool", "uv"), settings
    return None


def _settings(
    place: tuple[str, ...], settings: Mapping[str, Any]
) -> Iterator[tuple[tuple[str, ...], str, Any]]:
    """Yield the keys of the table, the name and the value of each setting,
    also of those for ``uv pip``.
    """
    for name, value in settings.items():
        yield place, name, value
    of_pip = settings.get("pip")
    if isinstance(of_pip, dict):
        for name, value in of_pip.items():
            yield (*place, "pip"), name, value
