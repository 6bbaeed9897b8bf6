"""Reads the text of a template, and refuses what the simulated CloudFormation does not know."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlparse

import yaml  # type: ignore[import-untyped]

from constructs_triton.cloud_assembly.template import Template

from ..errors import TemplateError
from ..services.service_api import ServiceApi

__all__ = ["check_template", "parse_template", "template_at"]

_IGNORED_SECTIONS = {"AWSTemplateFormatVersion", "Description", "Metadata"}
_SECTIONS = {"Parameters", "Rules", "Mappings", "Conditions", "Resources", "Outputs"} | _IGNORED_SECTIONS
_RESOURCE_SETTINGS = {"Condition", "DependsOn", "DeletionPolicy", "UpdateReplacePolicy"}
#: How CloudFormation waits, or updates what is not simulated.
_IGNORED_KEYS = {"Type", "Properties", "Metadata", "CreationPolicy", "UpdatePolicy"}
_RESOURCE_KEYS = _IGNORED_KEYS | _RESOURCE_SETTINGS
_POLICIES = {"Delete", "Retain", "RetainExceptOnCreate", "Snapshot"}


def parse_template(text: str) -> Template:
    """Read JSON, or YAML with CloudFormation's short forms."""
    try:
        body = json.loads(text)
    except ValueError:
        body = yaml.load(text, _ShortForms)  # a SafeLoader with CloudFormation's tags
    if not isinstance(body, dict):
        raise TemplateError("Template format error: unsupported structure")
    return Template(body)


def template_at(url: str, api: ServiceApi) -> Template:
    """Read the template at an address in S3, with the bucket in its path or in its host name."""
    parts = urlparse(url)
    path, (host, _, domain) = unquote(parts.path).lstrip("/"), (parts.hostname or "").partition(".s3")
    bucket, _, key = (host, "", path) if domain else path.partition("/")
    return parse_template(api.call("s3", "GetObject", Bucket=bucket, Key=key)["Body"].read().decode())


def check_template(template: Template) -> None:
    """Raise ``TemplateError`` for what is unknown: a section, a key of a resource, a policy, a reference."""
    _expect_known("template", template.body, _SECTIONS)
    known = template.resources.keys() | template.parameters.keys()
    for name, resource in template.resources.items():
        _expect_known(f"Resources.{name}", template.body["Resources"][name], _RESOURCE_KEYS)
        for policy in (resource.deletion_policy, resource.update_replace_policy):
            if policy not in _POLICIES:
                raise TemplateError(f"Resources.{name}: unknown policy {policy!r}")
        if resource.condition is not None and resource.condition not in template.conditions:
            raise TemplateError(f"Resources.{name}: condition {resource.condition} is not declared")
        unresolved = sorted(resource.references - known)
        if unresolved:
            raise TemplateError(
                f"Template format error: Unresolved resource dependencies {unresolved} "
                f"in the Resources block of the template ({name})"
            )
    _ = template.order  # raises an error for a circular dependency


def _expect_known(where: str, given: Mapping[str, Any], known: set[str]) -> None:
    unknown = sorted(given.keys() - known)
    if unknown:
        raise TemplateError(f"{where}: {', '.join(unknown)} is not supported; supported are {sorted(known)}")


class _ShortForms(yaml.SafeLoader):  # type: ignore[misc]  # untyped
    """YAML in which ``!Sub x`` means ``{"Fn::Sub": "x"}``."""


def _construct_short_form(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> Any:
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
