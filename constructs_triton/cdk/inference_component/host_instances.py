"""Whether the copies of all components of an endpoint fit on its instances."""

from __future__ import annotations

import math
from collections.abc import Sequence
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
        numbers = (self.copies, needs.gpus, needs.memory_mib, needs.cpu_cores or 0)
        return not any(is_token(number) for number in numbers)


@dataclass(frozen=True, slots=True)
class Shortage:
    """Why copies do not fit, as the end of a sentence, and a table of what each component needs."""

    reason: str
    table: str


@dataclass(frozen=True, slots=True)
class _Total:
    """What all copies need of a resource, and what the instances have; ``None`` if not known."""

    name: str
    needed: float
    available: float | None

    @property
    def is_short(self) -> bool:
        """Whether the instances have less than the copies need."""
        return self.available is not None and self.needed > self.available


@dataclass(frozen=True, slots=True)
class HostInstances:
    """Instances of one type, all of which components may use."""

    instance_type: InstanceType
    count: float

    def shortage(self, components: Sequence[ComponentCopies]) -> Shortage | None:
        """Return what the instances do not have enough of; ``None`` if all copies may fit.

        Components with numbers that are tokens are not counted.
        """
        known = [component for component in components if component.is_known]
        if is_token(self.count) or not known:
            return None

        # All copies together.
        short = [total.name for total in self._totals(known) if total.is_short]
        if short:
            reason = f"need more {' and '.join(short)} than max_instance_count instances have"
            return Shortage(reason, self._table(known))

        # Each component alone: a copy cannot be divided between instances.
        for component in known:
            most = self._copies_per_instance(component.requirements)
            if component.copies > most * self.count:
                copies = f"{most:g} {'copy' if most == 1 else 'copies'} of {component.name}"
                reason = f"do not fit, because one instance has room for {copies}"
                return Shortage(reason, self._table(known))
        return None

    def _copies_per_instance(self, needs: ComputeRequirements) -> float:
        """How many copies one instance has room for."""
        has = self.instance_type
        most = math.inf
        for needed, available in (
            (needs.gpus, has.gpus),
            (needs.cpu_cores or 0, has.vcpus),
            (needs.memory_mib, memory_mib_of(has)),
        ):
            if needed and available is not None:
                most = min(most, available // needed)
        return most

    def _totals(self, components: Sequence[ComponentCopies]) -> tuple[_Total, _Total, _Total]:
        """The GPUs, the vCPUs and the memory."""
        gpus = 0.0
        cores = 0.0
        memory = 0.0
        for component in components:
            needs = component.requirements
            gpus += needs.gpus * component.copies
            cores += (needs.cpu_cores or 0) * component.copies
            memory += needs.memory_mib * component.copies

        has = self.instance_type
        return (
            _Total("GPUs", gpus, self._of_all(has.gpus)),
            _Total("vCPUs", cores, self._of_all(has.vcpus)),
            _Total("memory", memory, self._of_all(memory_mib_of(has))),
        )

    def _of_all(self, of_one: float | None) -> float | None:
        return None if of_one is None else of_one * self.count

    def _table(self, components: Sequence[ComponentCopies]) -> str:
        """Return what each component needs, what all of them need, and what the instances have."""
        gpus, cores, memory = self._totals(components)
        copies = sum(component.copies for component in components)
        needed = (
            "all",
            f"{copies:g}",
            f"{gpus.needed:g}",
            _cores(cores.needed),
            _memory(memory.needed),
        )
        available = (
            f"{self.count:g} x {self.instance_type}",
            "",
            _known(gpus.available),
            _known(cores.available),
            _memory(memory.available),
        )
        rows = [_HEAD, *map(_row, components), needed, available]

        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = []
        for row in rows:
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            lines.append(f"  {'  '.join(cells).rstrip()}")
        return "\n".join(lines)


def _row(component: ComponentCopies) -> tuple[str, str, str, str, str]:
    """Return what the copies of a component need, as a row of the table."""
    needs = component.requirements
    copies = component.copies
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
