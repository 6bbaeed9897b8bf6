"""The check of packed environments against libarchive, which the server unpacks them with."""

from __future__ import annotations

import ctypes
import os
import tarfile
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

import pytest

from triton_model_check.model.packed_environment import read_environment

#: libarchive's archive.h: TIME, and what python_backend adds from 26.06 on.
_TIME, _SECURE_SYMLINKS, _SECURE_NODOTDOT, _SECURE_NOABSOLUTEPATHS = 0x4, 0x100, 0x200, 0x10000
_SECURE = _TIME | _SECURE_SYMLINKS | _SECURE_NODOTDOT | _SECURE_NOABSOLUTEPATHS
_BLOCK_BYTES = 10240


@pytest.fixture(scope="module")
def libarchive() -> Any:
    """The library in the wheel of the bundled server."""
    try:
        found = [
            each for each in files("nvidia-pytriton") or () if each.name.startswith("libarchive")
        ]
    except PackageNotFoundError:
        found = []
    if not found:
        pytest.skip("the wheel of the Triton server is not installed")
    library = load(Path(str(found[0].locate())))
    for name in ("archive_read_new", "archive_write_disk_new"):
        getattr(library, name).restype = ctypes.c_void_p
    library.archive_error_string.restype = ctypes.c_char_p
    return library


def load(path: Path) -> ctypes.CDLL:
    """Load a library of a wheel, after those beside it that it needs."""
    while True:
        try:
            return ctypes.CDLL(str(path))
        except OSError as error:
            needed = path.with_name(str(error).partition(":")[0])
            if needed == path or not needed.exists():
                raise
            load(needed)


def unpack(library: Any, path: Path, flags: int) -> str:
    """Unpack as the Python backend does, and return libarchive's error, or an empty string."""
    reader = ctypes.c_void_p(library.archive_read_new())
    writer = ctypes.c_void_p(library.archive_write_disk_new())
    library.archive_write_disk_set_options(writer, flags)
    library.archive_read_support_format_tar(reader)
    assert (
        library.archive_read_open_filename(reader, os.fsencode(path), ctypes.c_size_t(_BLOCK_BYTES))
        == 0
    )
    entry, error = ctypes.c_void_p(), ""
    while not error and library.archive_read_next_header(reader, ctypes.byref(entry)) == 0:
        if library.archive_write_header(writer, entry):
            error = library.archive_error_string(writer).decode()
        library.archive_write_finish_entry(writer)
    library.archive_read_free(reader)
    library.archive_write_free(writer)
    return error


@pytest.mark.parametrize(
    "names",
    [
        ["bin/activate"],
        ["./bin/activate", "lib//a"],
        ["a..b/c"],
        ["a/../b"],
        ["../b"],
        ["{absolute}/a"],
        ["bin/python3 -> /usr/bin/python3"],
        ["bin/python3 -> ../../python3"],
        ["lib64 -> lib", "lib/a", "lib64/b"],
        ["./lib64 -> lib", "lib64/b/c"],
        ["lib/a", "lib64 -> lib"],
        ["a -> b", "a -> c"],
    ],
    ids=" ".join,
)
def test_members_are_refused_as_by_libarchive(
    libarchive: Any, names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check reports the archives that libarchive refuses with the flags of 26.06,
    in its words.
    """
    path, folder = tmp_path / "env.tar", tmp_path / "unpacked"
    with tarfile.open(path, "w") as archive:
        for each in names:
            name, _, target = each.format(absolute=tmp_path).partition(" -> ")
            member = tarfile.TarInfo(name)
            if target:
                member.type, member.linkname = tarfile.SYMTYPE, target
            archive.addfile(member)
    folder.mkdir()
    monkeypatch.chdir(folder)
    refused = unpack(libarchive, path, _SECURE)
    found = read_environment(str(path)).outside
    assert bool(found) == bool(refused)
    assert found.startswith(refused)
