"""The order in which CloudFormation treats the resources of a template."""

from __future__ import annotations

from collections.abc import Callable
from graphlib import CycleError, TopologicalSorter

from constructs_triton_core.cloud_assembly.template import Template

from ..behaviour import Behaviour
from ..errors import TemplateError


def creation_order(template: Template, behaviour: Behaviour, phase: str) -> tuple[str, ...]:
    """Logical ids, each after those that it depends on; otherwise in the declared or a random order."""
    if not behaviour.random_order:
        return template.order
    return _order(template, lambda name: behaviour.draw(phase, name), is_reversed=False)


def deletion_order(template: Template, behaviour: Behaviour, phase: str) -> tuple[str, ...]:
    """Logical ids, each before those that it depends on."""
    if not behaviour.random_order:
        return template.order[::-1]
    return _order(template, lambda name: behaviour.draw(phase, name), is_reversed=True)


def _order(template: Template, place: Callable[[str], float], *, is_reversed: bool) -> tuple[str, ...]:
    """One resource at a time: of those that could be next, the one with the lowest number."""
    sorter = _sorter(template, is_reversed=is_reversed)
    try:
        sorter.prepare()
    except CycleError as error:
        raise TemplateError(f"Circular dependency between resources: {error.args[1]}") from None
    ordered: list[str] = []
    ready: list[str] = []
    while sorter.is_active():
        ready = sorted([*ready, *sorter.get_ready()], key=place)
        ordered.append(ready.pop(0))
        sorter.done(ordered[-1])
    return tuple(ordered)


def _sorter(template: Template, *, is_reversed: bool) -> TopologicalSorter[str]:
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for name, resource in template.resources.items():
        sorter.add(name)
        for other in resource.references & template.resources.keys():
            before, after = (name, other) if is_reversed else (other, name)
            sorter.add(after, before)
    return sorter
