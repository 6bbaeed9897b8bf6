"""The accounts and Regions of a request: its parts, and the rehearsals of the parts as one.

A process simulates one account in one Region at a time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter

from moto.core.models import DEFAULT_ACCOUNT_ID

from constructs_triton_core.cloud_assembly.assembly import Assembly

from ..account import REGION
from ..services.exchange import Exchange, Place
from .report import Operation, Rehearsal
from .versions import NONE, Request, StackVersion, Version

_READER, _WRITER = "Custom::CrossRegionExportReader", "Custom::CrossRegionExportWriter"
_GUARD = b"Some exports have changed"
"""What the code of the CDK's writer contains if it refuses to change a value."""
_STEP = re.compile(r"\bstep (\d+)")


def by_environment(request: Request) -> list[Request]:
    """Return one request for each account and Region, in the order in which they are deployed."""
    stacks = (*request.old.stacks, *request.new.stacks)
    account = _only({each.account for each in stacks}, DEFAULT_ACCOUNT_ID)
    region = _only({each.region for each in stacks}, REGION)
    shared: dict[Place, str] = {}
    old, new = (
        Version(
            tuple(
                replace(each, account=each.account or account, region=each.region or region)
                for each in version.stacks
            ),
            exchange=Exchange(shared, is_guarded=_is_guarded(version)),
        )
        for version in (request.old, request.new)
    )
    for version in (old, new):
        version.exchange.imported = _imported(version)
    return [
        replace(request, old=_part(old, place), new=_part(new, place))
        for place in _environments((*old.stacks, *new.stacks))
    ]


def _only(known: set[str], default: str) -> str:
    """The one known value, or the default; a stack without it is in the same place as the others."""
    known.discard("")
    return known.pop() if len(known) == 1 else default


def _part(version: Version, environment: str) -> Version:
    """The stacks of an environment. Without any, it is still no deletion of the whole app."""
    if not version.stacks:
        return NONE
    stacks = tuple(each for each in version.stacks if each.environment == environment)
    return replace(version, stacks=stacks, environment=environment)


def _environments(stacks: Iterable[StackVersion]) -> list[str]:
    """The environments, each after those that its stacks need, unless two of them need each other."""
    needed: dict[str, set[str]] = {}
    for each in stacks:
        needed.setdefault(each.environment, set()).update(each.needs - {each.environment})
    graph = {place: [each for each in needed if each in needed[place]] for place in needed}
    try:
        return list(TopologicalSorter(graph).static_order())
    except CycleError:
        return list(needed)


def _resources(stacks: Iterable[StackVersion], kind: str) -> Iterator[tuple[StackVersion, Mapping[str, object]]]:
    for stack in stacks:
        for each in stack.template.resources.values():
            if each.type == kind:
                yield stack, each.properties


def _imported(version: Version) -> dict[Place, str]:
    """The parameters that stacks read from other Regions, with the names of these stacks."""
    found: dict[Place, str] = {}
    for stack, properties in _resources(version.stacks, _READER):
        match properties:
            case {"ReaderProps": {"imports": dict() as imports}}:
                found |= {(stack.account, stack.region, name): stack.name for name in imports}
    return found


def _is_guarded(version: Version) -> bool:
    """Whether the CDK's function of this version refuses to change a parameter."""
    folders = {stack.directory for stack, _ in _resources(version.stacks, _WRITER) if stack.directory}
    assets = (each for folder in folders for one in Assembly(folder).asset_manifests for each in one.files())
    codes = (each.path / "index.js" for each in assets if each.path is not None)
    return any(_GUARD in each.read_bytes() for each in codes if each.is_file())


def joined(parts: list[Request], found: list[Rehearsal]) -> Rehearsal:
    """Return one rehearsal of those of the environments that were reached."""
    if len(parts) == 1:
        return found[0]
    known = Counter(name for each in parts for name in {stack.name for stack in _stacks(each)})
    known.update(name for each in found for name in _endpoints(each))
    several = {name for name, count in known.items() if count > 1}
    first, named = 0, []
    for part, each in zip(parts, found, strict=False):
        named.append(_named(each, part.environment, several, first))
        first += len(each.steps)
    missed = [f"{each.environment}, since the update fails before" for each in parts[len(found) :]]
    return Rehearsal(
        status={name: status for each in named for name, status in each.status.items()},
        reason=named[-1].reason,
        steps=tuple(step for each in named for step in each.steps),
        replaced=tuple(name for each in named for name in each.replaced),
        failures=tuple(failure for each in named for failure in each.failures),
        instances=tuple(instances for each in named for instances in each.instances),
        callers=(*(text for each in named for text in each.callers), *_stale(parts)),
        leftovers=tuple(left for each in named for left in each.leftovers),
        way_back=_together(each.way_back for each in named),
        deletion=_together(each.deletion for each in named),
        depends_on_aws=_unique(text for each in named for text in each.depends_on_aws),
        not_simulated=(*missed, *_unique(text for each in named for text in each.not_simulated)),
        problems=tuple(problem for each in named for problem in each.problems),
        construct_paths={name: path for each in named for name, path in each.construct_paths.items()},
    )


def _stacks(request: Request) -> tuple[StackVersion, ...]:
    return (*request.old.stacks, *request.new.stacks)


def _endpoints(found: Rehearsal) -> set[str]:
    return {each.endpoint for each in found.instances} | {name for each in found.steps for name in each.serving}


def _named(found: Rehearsal, environment: str, several: set[str], first: int) -> Rehearsal:
    """Number the steps after the ``first``, and add the environment to names that several environments have."""

    def name(given: str) -> str:
        return f"{given} ({environment})" if given in several else given

    def names(values: Mapping[str, str]) -> dict[str, str]:
        return {name(given): value for given, value in values.items()}

    def numbered(text: str) -> str:
        return _STEP.sub(lambda match: f"step {int(match[1]) + first}", text)

    return replace(
        found,
        status=names(found.status),
        steps=tuple(
            replace(
                each, number=each.number + first, stack=name(each.stack), serving=names(each.serving)
            )
            for each in found.steps
        ),
        failures=tuple(
            replace(each, step=each.step + first, serving=names(each.serving)) for each in found.failures
        ),
        instances=tuple(replace(each, endpoint=name(each.endpoint)) for each in found.instances),
        callers=tuple(" ".join(map(name, each.split(" "))) for each in found.callers),
        depends_on_aws=tuple(map(numbered, found.depends_on_aws)),
        problems=tuple(
            replace(each, path=f"{each.path} ({environment})", message=numbered(each.message))
            for each in found.problems
        ),
    )


def _stale(parts: list[Request]) -> tuple[str, ...]:
    """The values that stacks of other Regions keep although they have changed."""
    exchange = parts[0].new.exchange
    return tuple(
        f"stack {exchange.imported[place]} keeps the former value of {place[2]}, which the CDK does not write again"
        for place in sorted(exchange.stale & exchange.imported.keys())
    )


def _together(operations: Iterable[Operation | None]) -> Operation | None:
    """The end of the same operation in all environments that it concerns: the first failure, or the last end."""
    all_ends = [each for each in operations if each is not None and each.status]
    if not all_ends:
        return None
    end = next((each for each in all_ends if not each.succeeds), all_ends[-1])
    return replace(end, leftovers=tuple(left for each in all_ends for left in each.leftovers))


def _unique(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))
