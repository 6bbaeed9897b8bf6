"""Compares an article's boto3 calls with a template, parameter by parameter.

The names of CloudFormation and of the API are the same; references in the template are resolved.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

_TYPE_OF = {
    "create_model": "AWS::SageMaker::Model",
    "create_endpoint_config": "AWS::SageMaker::EndpointConfig",
    "create_endpoint": "AWS::SageMaker::Endpoint",
    "register_scalable_target": "AWS::ApplicationAutoScaling::ScalableTarget",
    "put_scaling_policy": "AWS::ApplicationAutoScaling::ScalingPolicy",
}
_FROM_TARGET = ("ServiceNamespace", "ResourceId", "ScalableDimension")
ABSENT = "-"


class Difference(NamedTuple):
    """A parameter whose value differs between the article and the template."""

    call: str
    parameter: str
    article: str
    ours: str


def article_calls(example: Path) -> dict[str, dict[str, Any]]:
    """Return the article's calls that create the endpoint, from the example's ``article.json``."""
    calls: dict[str, Any] = json.loads((example / "article.json").read_text(encoding="utf-8"))
    return {name: call for name, call in calls.items() if name != "invoke_endpoint"}


def article_invocations(example: Path) -> list[dict[str, str]]:
    """Return the parameters of the article's ``invoke_endpoint`` calls, in its order."""
    calls = json.loads((example / "article.json").read_text(encoding="utf-8"))
    invocations: list[dict[str, str]] = calls["invoke_endpoint"]
    return invocations


def template_calls(template: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what CloudFormation sends for a template with one endpoint,
    by the name of the call.
    """
    calls = {}
    for call, resource_type in _TYPE_OF.items():
        found = [
            each["Properties"]
            for each in template["Resources"].values()
            if each["Type"] == resource_type
        ]
        if found:
            (calls[call],) = found
    if "put_scaling_policy" in calls:
        policy = dict(calls["put_scaling_policy"])
        assert (
            template["Resources"][policy.pop("ScalingTargetId")["Ref"]]["Type"]
            == _TYPE_OF["register_scalable_target"]
        )
        target = calls["register_scalable_target"]
        calls["put_scaling_policy"] = policy | {name: target[name] for name in _FROM_TARGET}
    return calls


def differences(
    article: Mapping[str, Mapping[str, Any]], ours: Mapping[str, Mapping[str, Any]]
) -> set[Difference]:
    """Return every parameter that differs; ``<NAME>`` in the article is a placeholder for any
    string.

    Parts that are known only at deployment are shown as "…".
    """
    found = set()
    for call in article.keys() | ours.keys():
        theirs, mine = (dict(_parameters(each.get(call, {}))) for each in (article, ours))
        for parameter in theirs.keys() | mine.keys():
            wanted, given = theirs.get(parameter, ABSENT), mine.get(parameter, ABSENT)
            if not _agree(wanted, given):
                found.add(Difference(call, parameter, wanted, re.sub("<[^>]*>", "…", given)))
    return found


def explained(readme: Path) -> set[Difference]:
    """Return the rows of the README's table of differences, each of which must have a reason."""
    rows = set()
    for line in readme.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        if len(cells) == 5 and cells[0] in _TYPE_OF:
            assert len(cells[4]) > 20, f"{readme}: no reason given for {cells[1]}"
            rows.add(Difference(*cells[:4]))
    return rows


def _parameters(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and not _is_intrinsic(value):
        for name, each in value.items():
            yield from _parameters(each, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _parameters(each, f"{path}[{index}]")
    else:
        yield path, _text(value)


def _is_intrinsic(value: Mapping[str, Any]) -> bool:
    return len(value) == 1 and (next(iter(value)) == "Ref" or next(iter(value)).startswith("Fn::"))


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return _referred(value)
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _referred(value: Mapping[str, Any]) -> str:
    """Format an intrinsic function; a value that is known only at deployment
    is in angle brackets.
    """
    match value:
        case {"Fn::Join": [separator, parts]}:
            return str(separator).join(map(_text, parts))
        case {"Fn::GetAtt": [resource, attribute]}:
            return f"<{resource}.{attribute}>"
        case _:
            (name,) = value.values()
            return f"<{name}>"


def _agree(wanted: str, given: str) -> bool:
    pattern = ".+".join(map(re.escape, re.split(r"<[A-Z0-9_]+>", wanted)))
    return given != ABSENT and re.fullmatch(pattern, given) is not None
