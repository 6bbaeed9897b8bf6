"""The accounts and Regions of a request: its parts, and the rehearsals of the parts as one.

A process simulates one account in one Region at a time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields, replace
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from typing import Any

from constructs_triton_core.cloud_assembly.assembly import Assembly

from ..account import REGION
from ..moto_account.process import DEFAULT_ACCOUNT_ID
from ..providers.cdk import ExportReader
from ..services.service_api import Place
from .lost_data import DATA_CODES
from .report import Operation, Rehearsal
from .versions import NONE, Request, StackVersion, Version

_GUARD = b"Some exports have changed"
"""What the code of the CDK's writer contains if it refuses to change a value."""
_STEP = re.compile(r"\bstep (\d+)")


def by_environment(request: Request) -> dict[str, Request]:
    """Return one request for each account and Region, in the order in which they are deployed.

    A stack without an account or Region has that of the other stacks if these have only one.
    """
    stacks = (*request.old.stacks, *request.new.stacks)
    account = _only({each.account for each in stacks}, DEFAULT_ACCOUNT_ID)
    region = _only({each.region for each in stacks}, REGION)

    def placed(each: StackVersion) -> StackVersion:
        return replace(each, account=each.account or account, region=each.region or region)

    old, new = (Version(tuple(map(placed, each.stacks))) for each in (request.old, request.new))
    imports = _imported(old, new), _imported(new, old)
    return {
        each: replace(request, old=_part(old, each, imports[0]), new=_part(new, each, imports[1]))
        for each in _environments((*old.stacks, *new.stacks))
    }


def _only(known: set[str], default: str) -> str:
    known.discard("")
    return known.pop() if len(known) == 1 else default


def _part(version: Version, environment: str, imported: Mapping[Place, str]) -> Version:
    """The stacks of an environment; without any, it is no deletion of the app."""
    stacks = tuple(each for each in version.stacks if each.environment == environment)
    return Version(stacks, environment, version.passed, imported) if version.stacks else NONE


def _environments(stacks: tuple[StackVersion, ...]) -> list[str]:
    """The environments, each after those that it needs; in a circle,
    first those that need the fewest.
    """
    needed: dict[str, set[str]] = {each.environment: set() for each in stacks}
    for each in stacks:
        needed[each.environment] |= each.needs & needed.keys() - {each.environment}
    try:
        return list(TopologicalSorter(needed).static_order())
    except CycleError:
        return sorted(needed, key=lambda each: len(needed[each]))


def _imported(version: Version, other: Version) -> dict[Place, str]:
    """The parameters of other Regions that stacks read,
    if the function of the other version guards them.
    """
    found: dict[Place, str] = {}
    for stack in version.stacks:
        for each in stack.template.resources.values():
            match each.type, each.properties:
                case ExportReader.type, {"ReaderProps": {"imports": dict() as imports}}:
                    found |= {(stack.account, stack.region, name): stack.name for name in imports}
    return found if found and _is_guarded(other) else {}


def _is_guarded(version: Version) -> bool:
    """Whether the CDK's function of this version refuses to change a parameter that is read."""
    folders = {each.directory for each in version.stacks if each.directory}
    assets = (
        each
        for folder in folders
        for one in Assembly(folder).asset_manifests
        for each in one.files()
    )
    codes = (each.path / "index.js" for each in assets if each.path is not None)
    return any(_GUARD in each.read_bytes() for each in codes if each.is_file())


def joined(
    parts: Mapping[str, Request], found: list[Rehearsal], unreached: list[Rehearsal]
) -> Rehearsal:
    """Return the rehearsals of the environments as one; of those that were not reached,
    what is known without a rehearsal.

    The environment is added to the places of problems, and to names that several environments have.
    """
    if len(parts) == 1:
        return found[0]
    every = [*found, *unreached]
    names = Counter(chain.from_iterable(map(_names, parts.values(), every)))
    several = {name for name, count in names.items() if count > 1}
    first, named = 0, []
    for environment, each in zip(parts, every, strict=True):
        named.append(_of_environment(each, environment, several, first))
        first += len(each.steps)
    values = {each.name: [getattr(one, each.name) for one in named] for each in fields(Rehearsal)}
    whole = Rehearsal(**{name: _sum(each) for name, each in values.items()})
    missed = (f"{each}, since the update fails before" for each in list(parts)[len(found) :])
    # Lost data comes first, whichever environment it is in.
    problems = sorted(whole.problems, key=lambda each: each.code not in DATA_CODES)
    return replace(
        whole,
        reason=found[-1].reason,
        not_simulated=(*missed, *whole.not_simulated),
        problems=tuple(problems),
    )


def _names(part: Request, found: Rehearsal) -> set[str]:
    """The names of the stacks and endpoints of an environment."""
    serving = chain(
        {each.endpoint for each in found.instances}, *(each.serving for each in found.steps)
    )
    return {*serving, *(each.name for each in (*part.old.stacks, *part.new.stacks))}


def _of_environment(value: Any, environment: str, several: set[str], first: int) -> Any:
    """Name the environment in a report, or in a part of one,
    and count its steps from ``first`` on.
    """

    def name(given: str) -> str:
        return f"{given} ({environment})" if given in several else given

    def numbered(text: str) -> str:
        return _STEP.sub(lambda match: f"step {int(match[1]) + first}", text)

    changed: dict[str, Any] = {}
    for each in fields(value):
        match each.name, getattr(value, each.name):
            case "environment", _:
                changed[each.name] = environment
            case "path", str() as given:
                changed[each.name] = f"{given} ({environment})"
            case "message", str() as given:
                changed[each.name] = numbered(given)
            case "stack" | "endpoint", str() as given:
                changed[each.name] = name(given)
            case "status" | "serving", dict() as given:
                changed[each.name] = {name(key): given[key] for key in given}
            case "number" | "step", int() as given:
                changed[each.name] = given + first
            case "callers", tuple() as given:
                changed[each.name] = tuple(" ".join(map(name, one.split(" "))) for one in given)
            case "depends_on_aws", tuple() as given:
                changed[each.name] = tuple(map(numbered, given))
            case "steps" | "failures" | "instances" | "problems", tuple() as given:
                changed[each.name] = tuple(
                    _of_environment(one, environment, several, first) for one in given
                )
    return replace(value, **changed)


def _sum(values: list[Any]) -> Any:
    """Join the values of one field; of an operation the first failure, or the last end."""
    match values[0]:
        case dict():
            return {name: value for each in values for name, value in each.items()}
        case tuple():
            joined = list(chain.from_iterable(values))
            return tuple(dict.fromkeys(joined) if joined and isinstance(joined[0], str) else joined)
        case str():
            return values[-1]
        case int():
            return sum(values)
    ends: list[Operation] = [each for each in values if each is not None and each.status]
    if not ends:
        return None
    end = next((each for each in ends if not each.succeeds), ends[-1])
    return replace(end, leftovers=tuple(left for each in ends for left in each.leftovers))
