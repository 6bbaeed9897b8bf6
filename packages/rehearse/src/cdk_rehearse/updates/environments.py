"""The accounts and Regions of a request: its parts, and the rehearsals of the parts as one.

A process simulates one account in one Region at a time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from pathlib import Path
from typing import Any

from constructs_triton_core.cloud_assembly.assembly import Assembly

from ..account import REGION
from ..moto_account.process import DEFAULT_ACCOUNT_ID
from ..providers.cdk import ExportReader
from ..services.service_api import Place
from .lost_data import DATA_CODES
from .names_of_all_regions import names_given_twice
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
    account = _only({stack.account for stack in stacks}, DEFAULT_ACCOUNT_ID)
    region = _only({stack.region for stack in stacks}, REGION)
    old = _placed(request.old, account, region)
    new = _placed(request.new, account, region)
    imported_by_old = _imported(old, new)
    imported_by_new = _imported(new, old)

    parts: dict[str, Request] = {}
    for environment in _environments((*old.stacks, *new.stacks)):
        parts[environment] = replace(
            request,
            old=_part(old, environment, imported_by_old),
            new=_part(new, environment, imported_by_new),
        )
    return parts


def _placed(version: Version, account: str, region: str) -> Version:
    """Return a version whose stacks all have an account and a Region; these are the defaults."""
    stacks = [
        replace(stack, account=stack.account or account, region=stack.region or region)
        for stack in version.stacks
    ]
    return replace(version, stacks=tuple(stacks))


def _only(known: set[str], default: str) -> str:
    """Return the only known account or Region, or the default if there are several or none."""
    named = known - {""}
    return named.pop() if len(named) == 1 else default


def _part(version: Version, environment: str, imported: Mapping[Place, str]) -> Version:
    """The stacks of an environment; without any, it is no deletion of the app."""
    if not version.stacks:
        return NONE
    stacks = tuple(stack for stack in version.stacks if stack.environment == environment)
    drifts = version.drifts if stacks else ()
    return Version(stacks, environment, version.passed, imported, drifts)


def _environments(stacks: tuple[StackVersion, ...]) -> list[str]:
    """The environments, each after those that it needs; in a circle,
    first those that need the fewest.
    """
    needed: dict[str, set[str]] = {stack.environment: set() for stack in stacks}
    for stack in stacks:
        others = needed.keys() - {stack.environment}
        needed[stack.environment] |= stack.needs & others
    try:
        return list(TopologicalSorter(needed).static_order())
    except CycleError:
        return sorted(needed, key=lambda environment: len(needed[environment]))


def _imported(version: Version, other: Version) -> dict[Place, str]:
    """The parameters of other Regions that stacks read,
    if the function of the other version guards them.
    """
    found: dict[Place, str] = {}
    for stack in version.stacks:
        for resource in stack.template.resources.values():
            match resource.type, resource.properties:
                case ExportReader.type, {"ReaderProps": {"imports": dict() as imports}}:
                    found |= {(stack.account, stack.region, name): stack.name for name in imports}
    return found if found and _is_guarded(other) else {}


def _is_guarded(version: Version) -> bool:
    """Whether the CDK's function of this version refuses to change a parameter that is read."""
    folders = {stack.directory for stack in version.stacks if stack.directory}
    for folder in folders:
        for manifest in Assembly(folder).asset_manifests:
            for asset in manifest.files():
                if asset.path is not None and _has_guard(asset.path / "index.js"):
                    return True
    return False


def _has_guard(code: Path) -> bool:
    return code.is_file() and _GUARD in code.read_bytes()


def joined(
    parts: Mapping[str, Request], found: list[Rehearsal], unreached: list[Rehearsal]
) -> Rehearsal:
    """Return the rehearsals of the environments as one; of those that were not reached,
    what is known without a rehearsal.

    The environment is added to the places of problems, and to names that several environments have.
    """
    if len(parts) == 1:
        return found[0]

    rehearsals = [*found, *unreached]
    names: Counter[str] = Counter()
    for part, rehearsal in zip(parts.values(), rehearsals, strict=True):
        names.update(_names(part, rehearsal))
    ambiguous = {name for name, count in names.items() if count > 1}

    named: list[Rehearsal] = []
    first_step = 0
    for environment, rehearsal in zip(parts, rehearsals, strict=True):
        named.append(_of_environment(rehearsal, environment, ambiguous, first_step))
        first_step += len(rehearsal.steps)

    whole = _sum(named)
    unreached_environments = list(parts)[len(found) :]
    missed = [f"{name}, since the update fails before" for name in unreached_environments]
    given_twice = [
        _of_environment(found_twice, environment, ambiguous, 0)
        for environment, found_twice in names_given_twice(parts)
    ]
    # Lost data comes first, whichever environment it is in.
    problems = sorted(
        (*whole.problems, *given_twice), key=lambda problem: problem.code not in DATA_CODES
    )
    return replace(
        whole,
        reason=found[-1].reason,
        not_simulated=(*missed, *whole.not_simulated),
        problems=tuple(problems),
    )


def _names(part: Request, found: Rehearsal) -> set[str]:
    """The names of the stacks and endpoints of an environment."""
    names = {stack.name for stack in (*part.old.stacks, *part.new.stacks)}
    names.update(instances.endpoint for instances in found.instances)
    for step in found.steps:
        names.update(step.serving)
    return names


def _of_environment(value: Any, environment: str, ambiguous: set[str], first_step: int) -> Any:
    """Name the environment in a report, or in a part of one,
    and count its steps from ``first_step`` on.

    ``ambiguous`` has the names that several environments have.
    """

    def named(name: str) -> str:
        return f"{name} ({environment})" if name in ambiguous else name

    def numbered(text: str) -> str:
        return _STEP.sub(lambda match: f"step {int(match[1]) + first_step}", text)

    changed: dict[str, Any] = {}
    for member in fields(value):
        match member.name, getattr(value, member.name):
            case "environment", _:
                changed[member.name] = environment
            case "path", str() as path:
                changed[member.name] = f"{path} ({environment})"
            case "message", str() as message:
                changed[member.name] = numbered(message)
            case "stack" | "endpoint", str() as name:
                changed[member.name] = named(name)
            case "status" | "serving", dict() as by_name:
                changed[member.name] = {named(name): by_name[name] for name in by_name}
            case "number" | "step", int() as number:
                changed[member.name] = number + first_step
            case "callers", tuple() as lines:
                changed[member.name] = tuple(_named_words(line, named) for line in lines)
            case "depends_on_aws", tuple() as lines:
                changed[member.name] = tuple(map(numbered, lines))
            case "steps" | "failures" | "instances" | "problems", tuple() as parts:
                changed[member.name] = tuple(
                    _of_environment(part, environment, ambiguous, first_step) for part in parts
                )
    return replace(value, **changed)


def _named_words(line: str, named: Callable[[str], str]) -> str:
    """Return a line in which each word that is an ambiguous name has its environment."""
    return " ".join(map(named, line.split(" ")))


def _sum(rehearsals: list[Rehearsal]) -> Rehearsal:
    """Return a rehearsal each of whose fields joins those of all rehearsals."""
    joined_fields = {}
    for member in fields(Rehearsal):
        values = [getattr(rehearsal, member.name) for rehearsal in rehearsals]
        joined_fields[member.name] = _joined_values(values)
    return Rehearsal(**joined_fields)


def _joined_values(values: list[Any]) -> Any:
    """Join the values of one field, by their type: of texts, the last one counts."""
    match values[0]:
        case dict():
            return dict(chain.from_iterable(mapping.items() for mapping in values))
        case tuple():
            elements = list(chain.from_iterable(values))
            has_lines = bool(elements) and isinstance(elements[0], str)
            return tuple(dict.fromkeys(elements) if has_lines else elements)
        case str():
            return values[-1]
        case int():
            return sum(values)
    return _joined_operations(values)


def _joined_operations(operations: list[Operation | None]) -> Operation | None:
    """Return the first operation that fails, or the last one, with the leftovers of all."""
    ended = [operation for operation in operations if operation is not None and operation.status]
    if not ended:
        return None
    failed = [operation for operation in ended if not operation.succeeds]
    decisive = failed[0] if failed else ended[-1]
    leftovers = chain.from_iterable(operation.leftovers for operation in ended)
    return replace(decisive, leftovers=tuple(leftovers))
