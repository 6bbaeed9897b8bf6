"""Reads values of a configuration as the C++ backends do.

Source: backend r24.10, backend_common.cc.
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

Config = Dict[str, Any]

_BOOLEANS = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}
_LEADING_INTEGER = re.compile(r"\s*[+-]?[0-9]+")


class TensorInfo(NamedTuple):
    """A tensor of a model. ``shape`` has the batch dimension, and -1 for a variable size.

    ``data_type`` is empty if Triton has no name for it.
    """

    name: str
    data_type: str
    shape: Tuple[int, ...]


def parameter(config: Config, key: str) -> Optional[str]:
    """Return the string value of a parameter; ``None`` if it is absent."""
    given = config.get("parameters", {}).get(key)
    return None if given is None else str(given["string_value"])


def boolean(config: Config, key: str) -> Optional[bool]:
    """Return the value of a boolean parameter; ``None`` if it is absent."""
    given = parameter(config, key)
    if given is None:
        return None
    if given.lower() not in _BOOLEANS:
        raise ValueError(f"failed to convert {key} '{given}' to boolean")
    return _BOOLEANS[given.lower()]


def integer(config: Config, key: str) -> Optional[int]:
    """Return the value of an integer parameter; ``None`` if it is absent.

    What follows is ignored.
    """
    given = parameter(config, key)
    if given is None:
        return None
    found = _LEADING_INTEGER.match(given)
    if found is None:
        raise ValueError(f"failed to convert {key} '{given}' to integral number")
    return int(found[0])


def dims_of(tensor: Config) -> List[int]:
    """Return the dims that the model sees: those of ``reshape``, if there is one."""
    reshape = tensor.get("reshape")
    return [int(size) for size in (tensor["dims"] if reshape is None else reshape.get("shape", []))]


def count_inputs(config: Config) -> int:
    """Return how many inputs the model must have: required ones, batch inputs,
    controls and states.
    """
    sequences = config.get("sequence_batching", {})
    controls = 0
    for control in sequences.get("control_input", []):
        controls += len({entry["kind"] for entry in control["control"]})
    required = sum(1 for tensor in config["input"] if not tensor.get("optional"))
    return (
        required + len(config.get("batch_input", [])) + controls + len(sequences.get("state", []))
    )
