"""Child processes are started in one folder alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from workspace import PACKAGES, PROJECT

ROOM = PACKAGES["constructs_triton_core"].root / "processes"
MODULES = [
    path for each in PACKAGES.values() for path in each.modules if not path.is_relative_to(ROOM)
]
WORDS = {
    "subprocess",
    "multiprocessing",
    "ProcessPoolExecutor",
    "pty",
    "posix_spawn",
    "posix_spawnp",
}
WORDS |= {
    "create_subprocess_exec",
    "create_subprocess_shell",
    "subprocess_exec",
    "subprocess_shell",
}
WORDS |= {"fork", "forkpty", "system", "popen", "startfile", "webbrowser"}
# They start a program to answer.
WORDS |= {"find_library", "processor", "getnode", "uuid1"}
FAMILIES = ("exec", "spawn")
#: Code without any of the names is not parsed.
MENTION = re.compile("|".join([*WORDS, *FAMILIES]))


def starts(code: str) -> list[str]:
    """The names in ``code`` by which a child process could be started."""
    tree = ast.parse(code if MENTION.search(code) else "")
    return sorted({name for name in _names(tree) if _starts(name)})


def _names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (part for alias in node.names for part in alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            yield from (node.module or "").split(".")
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from node.value.split(".")  # getattr and import_module


def _starts(name: str) -> bool:
    owner, _, last = name.rpartition(".")
    if name == "platform.system":
        return False
    return last in WORDS - {"system", "processor"} or (
        owner in ("os", "posix", "platform") and (last in WORDS or last.startswith(FAMILIES))
    )


def test_no_module_starts_a_child_process() -> None:
    """Only ``processes/`` starts programs, so that all of them end with their
    parent and get its rules.
    """
    found = {str(path.relative_to(PROJECT)): starts(path.read_text()) for path in MODULES}
    assert not {path: names for path, names in found.items() if names}


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import subprocess as s", "subprocess"),
        ("from subprocess import run", "subprocess"),
        (
            "from concurrent.futures import ProcessPoolExecutor",
            "concurrent.futures.ProcessPoolExecutor",
        ),
        ("import concurrent.futures as f\nf.ProcessPoolExecutor(2)", "f.ProcessPoolExecutor"),
        ("import asyncio\nasyncio.create_subprocess_exec('a')", "asyncio.create_subprocess_exec"),
        ("import os\nos.fork()", "os.fork"),
        ("import os\nos.execv('a', [])", "os.execv"),
        ("from os import spawnv", "os.spawnv"),
        ("import os\nos.system('a')", "os.system"),
        ("import platform\nplatform.processor()", "platform.processor"),
        ("from importlib import import_module\nimport_module('subprocess')", "subprocess"),
        ("getattr(loop, 'subprocess_exec')", "subprocess_exec"),
    ],
)
def test_each_way_is_found(code: str, found: str) -> None:
    """The search finds the ways that Python has, also under another name."""
    assert found in starts(code)


def test_harmless_code_is_not_found() -> None:
    """Names that only look alike are allowed."""
    assert (
        starts(
            "import platform\nplatform.system()\nloader.exec_module(1)\nvalue.system\n'a system'"
        )
        == []
    )
