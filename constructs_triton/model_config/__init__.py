"""Triton's ``config.pbtxt``: reading, writing, checking.

Names resolve on first use (PEP 562); protobuf is imported once a configuration is read. All names of
``constructs_triton.model_config.builder`` are names of this package, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from constructs_triton.lazy_names import lazy_names
from constructs_triton.model_config import builder

if TYPE_CHECKING:
    from constructs_triton.model_config.builder import *  # noqa: F403 - the builder's list, not a copy of it
    from constructs_triton.model_config.ensemble import EnsembleGraph as EnsembleGraph
    from constructs_triton.model_config.folder import ModelFolder as ModelFolder
    from constructs_triton.model_config.judge import all_rules as all_rules
    from constructs_triton.model_config.report import Report as Report
    from constructs_triton.model_config.schema import load_schema as load_schema
    from constructs_triton.model_config.schema import new_model_config as new_model_config
    from constructs_triton.model_config.text import format_model_config as format_model_config
    from constructs_triton.model_config.text import parse_model_config as parse_model_config

_HOMES = dict.fromkeys(builder.__all__, ".builder") | {
    "EnsembleGraph": ".ensemble",
    "ModelFolder": ".folder",
    "Report": ".report",
    "all_rules": ".judge",
    "format_model_config": ".text",
    "load_schema": ".schema",
    "new_model_config": ".schema",
    "parse_model_config": ".text",
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
__all__ += builder.__all__
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
