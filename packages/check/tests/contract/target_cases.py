"""The cases of ``oracle_targets/``: repositories, how a server is started with them, and what it
answers.

A case in ``cases.toml`` has these keys; ``@NAME@`` in a text is replaced by the text ``NAME`` of
``[parts]``:

- ``models``: Python models by name, each with what its ``config.pbtxt`` has after ``@python@``.
- ``files``: further files by path, or other content for those of ``models``. A path that ends in
  ``/`` is an empty folder, and the content ``@library@`` is a backend's library.
- ``backends``: files of backends beside those of the server.
- ``repositories``: the folders that are repositories; without it the files are those of one
  repository.
- ``flags``, ``shm``, ``read_only``: options of the server, the size of ``/dev/shm`` as mount(8)
  writes it, and whether the repositories are mounted read-only.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from triton_model_check.model_config.target import Target

ORACLE = Path(__file__).parent / "oracle_targets"
VERDICTS: dict[str, dict[str, Any]] = json.loads(
    (ORACLE / "verdicts.json").read_text(encoding="utf-8")
)
#: What a container has without ``--shm-size``.
CONTAINER_SHM = "64m"
LIBRARY = "@library@"
#: The release of the server that gave the verdicts.
RELEASE = "24.10"
_UNITS = {"k": 2**10, "m": 2**20, "g": 2**30}
_TOML: dict[str, Any] = tomllib.loads((ORACLE / "cases.toml").read_text(encoding="utf-8"))
_PARTS: dict[str, str] = {**_TOML["parts"], "long": "x" * 1_200_000}


class Case(NamedTuple):
    """One start of the server, with the texts of the files in its repositories
    and its own backends.
    """

    what: str
    files: dict[str, str]
    backends: dict[str, str]
    repositories: list[str]
    flags: list[str]
    shm: str
    is_read_only: bool

    def options(self, name: str) -> list[str]:
        """Return the values of an option of the server."""
        return [each.partition("=")[2] for each in self.flags if each.startswith(f"--{name}=")]

    @property
    def target(self) -> Target:
        """What the options mean for a check: a container of the release,
        on a machine without GPUs.
        """
        *_, name = [None, *self.options("model-config-name")]
        settings = dict(each.split("=") for each in self.options("backend-config"))
        region = settings.get("python,shm-default-byte-size")
        return Target.named(
            "kserve" if self.is_read_only else "docker",
            image_version=RELEASE,
            gpu_count=0,
            shm_bytes=int(self.shm.rstrip("kmg")) * _UNITS.get(self.shm[-1], 1),
            shm_default_byte_size=None if region is None else int(region),
            load_models=tuple(self.options("load-model")),
            model_config_name=name,
            backends=tuple({path.partition("/")[0] for path in self.backends}),
        )

    def write(self, folder: Path, library: bytes = b"\x7fELF") -> list[Path]:
        """Write the files into a folder and return the repositories."""
        write_files(folder, self.files, library)
        return [folder / each for each in self.repositories]


def write_files(folder: Path, files: dict[str, str], library: bytes) -> None:
    """Write files, and an empty folder for each path that ends in ``/``."""
    for path, text in files.items():
        target = folder / path
        (target if path.endswith("/") else target.parent).mkdir(parents=True, exist_ok=True)
        if not path.endswith("/"):
            target.write_bytes(library if text == LIBRARY else text.encode())


def _case(raw: dict[str, Any]) -> Case:
    files: dict[str, str] = {}
    for name, more in raw.get("models", {}).items():
        files[f"{name}/config.pbtxt"] = f"@python@{more}\n"
        files[f"{name}/1/model.py"] = "@model@"
    return Case(
        raw["what"],
        {path: _filled(text) for path, text in {**files, **raw.get("files", {})}.items()},
        {path: _filled(text) for path, text in raw.get("backends", {}).items()},
        raw.get("repositories", ["."]),
        raw.get("flags", []),
        raw.get("shm", CONTAINER_SHM),
        raw.get("read_only", False),
    )


def _filled(text: str) -> str:
    return (
        text
        if text == LIBRARY
        else re.sub("@([a-z]+)@", lambda part: _PARTS[part[1]].lstrip("\n"), text)
    )


CASES = {name: _case(raw) for name, raw in _TOML["cases"].items()}
