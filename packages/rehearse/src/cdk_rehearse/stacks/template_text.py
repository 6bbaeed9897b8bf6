"""Reads a template in S3, and refuses what the simulated CloudFormation does not know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlparse

from constructs_triton_core.cloud_assembly.template import Template

from ..errors import TemplateError
from ..services.service_api import ServiceApi
from ..template_parsing import parse_template

_IGNORED_SECTIONS = {"AWSTemplateFormatVersion", "Description", "Metadata"}
_SECTIONS = {"Parameters", "Rules", "Mappings", "Conditions", "Resources", "Outputs"} | _IGNORED_SECTIONS
_RESOURCE_SETTINGS = {"Condition", "DependsOn", "DeletionPolicy", "UpdateReplacePolicy"}
#: How CloudFormation waits, or updates what is not simulated.
_IGNORED_KEYS = {"Type", "Properties", "Metadata", "CreationPolicy", "UpdatePolicy"}
_RESOURCE_KEYS = _IGNORED_KEYS | _RESOURCE_SETTINGS
_POLICIES = {"Delete", "Retain", "RetainExceptOnCreate", "Snapshot"}


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
