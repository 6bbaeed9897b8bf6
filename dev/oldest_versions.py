"""Print the constraints of an environment with the oldest allowed version of what bounds hostile
input.

    python dev/oldest_versions.py

These packages enforce rows of SECURITY.md, or the project replaces private members of them. Their
lower bounds come from the pyproject.toml of all packages. All others have the versions of
constraints.txt, except for those that an older package itself requires.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import requires

from members import PROJECT, members_of

PACKAGES = ("aiohttp", "moto", "urllib3", "uv")
PIN = re.compile(r"^([A-Za-z0-9._-]+)==(.+)$", re.MULTILINE)
NAME = re.compile(r"[A-Za-z0-9._-]+")
REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[.*?\])?>=([0-9.]+)")


def lower_bounds() -> dict[str, str]:
    """Return the lower bound of each package; the highest, if several extras have one."""
    found: dict[str, str] = {}
    for requirement in _requirements():
        match = REQUIREMENT.match(requirement)
        if match is not None and match[1] in PACKAGES:
            found[match[1]] = max(match[2], found.get(match[1], "0"), key=_version)
    assert set(found) == set(PACKAGES), f"without a lower bound: {set(PACKAGES) - set(found)}"
    return found


def constraints(bounds: dict[str, str]) -> Iterator[str]:
    """Yield the lines of constraints.txt with the lower bounds in place of the versions."""
    pins = PIN.findall((PROJECT / "constraints.txt").read_text())
    older = [
        name
        for name, version in pins
        if name in bounds and _version(version) != _version(bounds[name])
    ]
    free = {NAME.match(each)[0].lower() for name in older for each in requires(name) or ()}  # type: ignore[index]
    for name, rest in pins:
        if name in bounds:
            yield f"{name}=={bounds[name]}"
        elif name not in free:
            yield f"{name}=={rest}"


def _requirements() -> Iterator[str]:
    for member in members_of(PROJECT):
        yield from member.requirements


def _version(text: str) -> list[int]:
    return [int(part) for part in text.split(".")]


if __name__ == "__main__":
    print("\n".join(constraints(lower_bounds())))
