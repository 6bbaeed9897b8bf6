"""Reads the text of a template: JSON, or YAML with CloudFormation's short forms, within bounds.

CloudFormation itself refuses templates of more than 1 MB, and aliases in YAML (user guide: template
formats).
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from constructs_triton_core.bounded_json import parse_bounded_json
from constructs_triton_core.cloud_assembly.template import Template, check_shape
from constructs_triton_core.errors import TemplateError
from constructs_triton_core.untrusted.regular_files import read_regular

_MOST_YAML_BYTES = 1_000_000
_MOST_DEEP = 100
_HINT = "pass a template that CloudFormation accepts"


def read_template_file(path: Path, hint: str) -> Template:
    """Read a template in JSON or YAML; raises ``TemplateError`` if it cannot be read."""
    try:
        text = read_regular(path).decode("utf-8-sig")
    except (OSError, ValueError) as error:
        raise TemplateError(f"{path}: cannot be read ({error}); {hint}") from None
    return parse_template(text, str(path), hint)


def parse_template(text: str, where: str = "template", hint: str = _HINT) -> Template:
    """Read the text of a template; an error names it ``where`` and advises ``hint``."""
    kind = "JSON" if text.lstrip().startswith("{") else "YAML"
    try:
        body = parse_bounded_json(text if kind == "JSON" else json.dumps(_yaml(text)))
    except (ValueError, TypeError, RecursionError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise TemplateError(f"{where}: cannot be read as {kind} ({reason}); {hint}") from None
    check_shape(body, {}, where, hint)
    return Template.checked(body, text, where, hint)


def _yaml(text: str) -> Any:
    if len(text.encode()) > _MOST_YAML_BYTES:
        raise ValueError(f"it has more than {_MOST_YAML_BYTES} bytes")
    return yaml.load(text, _ShortForms)  # a SafeLoader with CloudFormation's tags


class _ShortForms(yaml.SafeLoader):  # type: ignore[misc]  # untyped
    """YAML in which ``!Sub x`` means ``{"Fn::Sub": "x"}``, without aliases."""

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Read one node."""
        if self.check_event(yaml.AliasEvent):
            raise ValueError(f"CloudFormation knows no aliases: {self.peek_event().start_mark}")
        if self._depth > _MOST_DEEP:
            raise ValueError(f"it is nested more than {_MOST_DEEP} deep")
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Read a mapping, whose names are strings also where they look like numbers,
        such as account IDs.
        """
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                key.tag = "tag:yaml.org,2002:str"
        found: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return found


def _construct_short_form(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> Any:
    """Read a short form such as ``!GetAtt A.B`` as its long one."""
    value: Any
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        assert isinstance(node, yaml.MappingNode)
        value = loader.construct_mapping(node, deep=True)
    if suffix == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}": value}


_ShortForms.add_multi_constructor("!", _construct_short_form)
# Dates stay strings, such as the policy version "2012-10-17".
_ShortForms.add_constructor("tag:yaml.org,2002:timestamp", yaml.SafeLoader.construct_yaml_str)
