"""Properties of other endpoints that component endpoints do not have, and what to use in their place.

``refused_properties.json`` has the reason for each, and what to do instead.
"""

from __future__ import annotations

from collections.abc import Mapping

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts import facts_of

_load = facts_of(__package__)


def refuse_of_endpoint(given: Mapping[str, object]) -> None:
    """Raise for a property that component endpoints do not have."""
    _refuse(given, "component endpoints")


def refuse_of_component(given: Mapping[str, object]) -> None:
    """Raise for a property that inference components do not have."""
    _refuse(given, "inference components")


def _refuse(given: Mapping[str, object], what: str) -> None:
    for name, refused in _load("refused_properties")[what].items():
        if given.get(name) is not None:
            raise InvalidValueError(
                f"{name}: not supported on {what}, because {refused['reason']}; {refused['instead']}"
            )
