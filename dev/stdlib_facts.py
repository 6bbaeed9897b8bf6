"""Write ``python_stdlib.json``: what the standard library has since Python 3.9, by version.

Candidates are the notes "New in version" of Python's documentation, which vermin collects (PyPI,
MIT). A candidate counts if real Pythons agree: the version that introduces it has it, and no older
one has it. This leaves out what was backported and what only other platforms have.

Run it with a Python of each version from 3.8 to 3.13, of the last patch release:
``pip install vermin && python dev/stdlib_facts.py python3.8 python3.9 ... python3.13``
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_OLDEST = (3, 9)
_FACTS = Path(__file__).parents[1] / "packages/check/src/triton_model_check/facts"
_PROBE = """import importlib, json, sys, warnings
warnings.simplefilter("ignore")

def has(name):
    module, _, member = name.rpartition(".")
    for whole in (name, module):
        try:
            found = importlib.import_module(whole)
        except (ImportError, ValueError):
            continue
        return whole == name or hasattr(found, member)
    return False

names = json.load(sys.stdin)
print(json.dumps([sys.version_info[:2], [name for name in names if has(name)]]))
"""
Version = tuple[int, int]


def main(pythons: Sequence[str]) -> None:
    """Write the facts, with what these Pythons have."""
    # vermin is installed for this program only.
    config = importlib.import_module("vermin.config").Config()
    rules = importlib.import_module("vermin.rules")
    modules = _candidates(rules.MOD_REQS(config))
    names = _candidates(rules.MOD_MEM_REQS(config))
    present = dict(_ask(python, [*modules, *names]) for python in pythons)
    facts = {
        "sources": [
            "vermin 1.9.2 (PyPI): the notes 'New in version' of Python's documentation",
            "CPython "
            + ", ".join(f"{major}.{minor}" for major, minor in sorted(present))
            + " on Linux, asked by dev/stdlib_facts.py",
        ],
        "modules": _confirmed(modules, present),
        "names": _confirmed(names, present),
    }
    text = json.dumps(facts, indent=1)
    (_FACTS / "python_stdlib.json").write_text(f"{text}\n", "utf-8")


def _candidates(found: dict[str, tuple[Version | None, Version | None]]) -> dict[str, Version]:
    newer = {name: since[1] for name, since in sorted(found.items()) if since[1] is not None}
    return {
        name: since
        for name, since in newer.items()
        if since >= _OLDEST and not name.startswith("test.")
    }


def _ask(python: str, names: Sequence[str]) -> tuple[Version, set[str]]:
    done = subprocess.run(
        [python, "-c", _PROBE], input=json.dumps(names), capture_output=True, text=True, check=True
    )
    (major, minor), has = json.loads(done.stdout.splitlines()[-1])
    return (major, minor), set(has)


def _confirmed(candidates: dict[str, Version], present: dict[Version, set[str]]) -> dict[str, str]:
    return {
        name: f"{since[0]}.{since[1]}"
        for name, since in candidates.items()
        if since in present
        and name in present[since]
        and not any(name in has for version, has in present.items() if version < since)
    }


if __name__ == "__main__":
    main(sys.argv[1:])
