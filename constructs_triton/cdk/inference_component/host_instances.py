"""Whether the copies of all components of an endpoint fit on its instances."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from constructs_triton.cdk.inference_component.compute_requirements import (
    ComputeRequirements,
    memory_mib_of,
)
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.tokens import is_token

_HEAD = ("component", "copies", "GPUs", "vCPUs", "memory")


@dataclass(frozen=True, slots=True)
class ComponentCopies:
    """A component, the reservation of each copy, and a number of copies.

    ``used_memory_mib`` is what the models of a copy take of the main memory, at least; 0 if it is
    not known.
    """

    name: str
    requirements: ComputeRequirements
    copies: float
    used_memory_mib: float = 0

    @property
    def as_used(self) -> ComponentCopies:
        """The component as if it reserved what its models take."""
        needs = self.requirements
        if is_token(needs.memory_mib) or needs.memory_mib >= self.used_memory_mib:
            return self
        return replace(self, requirements=replace(needs, memory_mib=self.used_memory_mib))

    @property
    def is_known(self) -> bool:
        """Whether no number is a token."""
        needs = self.requirements
        return not any(
            is_token(each)
            for each in (self.copies, needs.gpus, needs.memory_mib, needs.cpu_cores or 0)
        )


@dataclass(frozen=True, slots=True)
class Shortage:
    """Why copies do not fit, as the end of a sentence, and a table of what each component needs."""

    reason: str
    table: str


@dataclass(frozen=True, slots=True)
class HostInstances:
    """Instances of one type, all of which components may use."""

    instance_type: InstanceType
    count: float

    def shortage(self, components: Sequence[ComponentCopies]) -> Shortage | None:
        """Return what the instances do not have enough of; ``None`` if all copies may fit.

        Components with numbers that are tokens are not counted.
        """
        known = [each for each in components if each.is_known]
        if is_token(self.count) or not known:
            return None
        short = [
            name for name, needed, room in self._totals(known) if room is not None and needed > room
        ]
        if short:
            reason = f"need more {' and '.join(short)} than max_instance_count instances have"
            return Shortage(reason, self._table(known))
        for each in known:
            most = self._copies_per_instance(each.requirements)
            if each.copies > most * self.count:
                copies = f"{most:g} {'copy' if most == 1 else 'copies'} of {each.name}"
                reason = f"do not fit, because one instance has room for {copies}"
                return Shortage(reason, self._table(known))
        return None

    def _copies_per_instance(self, needs: ComputeRequirements) -> float:
        """How many copies one instance has room for: a copy cannot be divided between instances."""
        has = self.instance_type
        rooms = (
            (needs.gpus, has.gpus),
            (needs.cpu_cores or 0, has.vcpus),
            (needs.memory_mib, memory_mib_of(has)),
        )
        return min(
            (room // need for need, room in rooms if need and room is not None), default=math.inf
        )

    def _totals(
        self, components: Sequence[ComponentCopies]
    ) -> list[tuple[str, float, float | None]]:
        """What all copies need of each resource, and what the instances have;
        ``None`` if not known.
        """
        needs: tuple[tuple[str, Callable[[ComputeRequirements], float], float | None], ...] = (
            ("GPUs", lambda each: each.gpus, self.instance_type.gpus),
            ("vCPUs", lambda each: each.cpu_cores or 0, self.instance_type.vcpus),
            ("memory", lambda each: each.memory_mib, memory_mib_of(self.instance_type)),
        )
        return [
            (
                name,
                sum(need(each.requirements) * each.copies for each in components),
                None if room is None else room * self.count,
            )
            for name, need, room in needs
        ]

    def _table(self, components: Sequence[ComponentCopies]) -> str:
        rows = [_HEAD, *(_row(each) for each in components)]
        gpus, cores, memory = self._totals(components)
        copies = sum(each.copies for each in components)
        rows.append(("all", f"{copies:g}", f"{gpus[1]:g}", _cores(cores[1]), _memory(memory[1])))
        available = f"{self.count:g} x {self.instance_type}"
        rows.append((available, "", _known(gpus[2]), _known(cores[2]), _memory(memory[2])))
        widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
        lines = (
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            for row in rows
        )
        return "\n".join(f"  {line.rstrip()}" for line in lines)


def _row(component: ComponentCopies) -> tuple[str, str, str, str, str]:
    needs, copies = component.requirements, component.copies
    return (
        component.name,
        f"{copies:g}",
        f"{needs.gpus * copies:g}",
        _cores((needs.cpu_cores or 0) * copies),
        _memory(needs.memory_mib * copies),
    )


def _cores(count: float) -> str:
    return f"{count:g}" if count else "-"


def _known(count: float | None) -> str:
    return "?" if count is None else f"{count:g}"


def _memory(mebibytes: float | None) -> str:
    return "?" if mebibytes is None else f"{mebibytes / 1024:.4g} GiB"
