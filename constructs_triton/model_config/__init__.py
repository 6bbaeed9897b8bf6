"""Triton's ``config.pbtxt``: reading, writing, checking.

Names resolve on first use (PEP 562); protobuf is imported once a configuration is read.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from constructs_triton.model_config.ensemble import EnsembleGraph as EnsembleGraph
    from constructs_triton.model_config.folder import ModelFolder as ModelFolder
    from constructs_triton.model_config.judge import all_rules as all_rules
    from constructs_triton.model_config.report import Report as Report
    from constructs_triton.model_config.schema import load_schema as load_schema
    from constructs_triton.model_config.schema import new_model_config as new_model_config
    from constructs_triton.model_config.text import format_model_config as format_model_config
    from constructs_triton.model_config.text import parse_model_config as parse_model_config

_HOMES = {
    "EnsembleGraph": "ensemble",
    "ModelFolder": "folder",
    "Report": "report",
    "all_rules": "judge",
    "format_model_config": "text",
    "load_schema": "schema",
    "new_model_config": "schema",
    "parse_model_config": "text",
}

__all__ = [
    "EnsembleGraph",
    "ModelFolder",
    "Report",
    "all_rules",
    "format_model_config",
    "load_schema",
    "new_model_config",
    "parse_model_config",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
