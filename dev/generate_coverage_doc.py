"""Writes ``dev/project/coverage.md`` from the L1 classes of the CDK.

Run ``python dev/generate_coverage_doc.py``.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from aws_cdk import aws_sagemaker as sagemaker
from coverage_keywords import keyword_of
from coverage_table import LEFT_OUT, NOT_YET, TYPED, LeftOut

OUTPUT = Path(__file__).parents[1] / "dev" / "project" / "coverage.md"
CLASSES = {
    "CfnModel": ("endpoint.cfn_model", sagemaker.CfnModel),
    "CfnEndpointConfig": ("endpoint.cfn_endpoint_config", sagemaker.CfnEndpointConfig),
    "CfnEndpoint": ("endpoint.cfn_endpoint", sagemaker.CfnEndpoint),
    "CfnInferenceComponent": ("component.cfn_inference_component", sagemaker.CfnInferenceComponent),
}
HEAD = """# CloudFormation coverage

This page lists the properties of the CloudFormation resources of endpoints and inference
components, with the keyword of the constructs that sets each of them, or the reason why there is
none.

The page is generated from the L1 classes of aws-cdk-lib by `dev/generate_coverage_doc.py`. A test
fails if a release of the CDK has a property without a row. [The
comparison](../../docs/reference/comparison.md) lists capabilities.

## Set a property without a keyword

Use the L1 construct:

```python
import aws_cdk as cdk

from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonEnsembleEndpoint,
    TritonModelRepository,
)

stack = cdk.Stack(cdk.App(), "Vision")
endpoint = TritonEnsembleEndpoint(
    stack,
    "Digits",
    model_repository=TritonModelRepository(
        stack, "Models", source=ModelSource.from_directory("models")
    ),
    ensemble="digits",
    instance_type=InstanceType.of("ml.g5.xlarge"),
)
endpoint.cfn_model.add_property_override(
    "PrimaryContainer.ImageConfig", {"RepositoryAccessMode": "Vpc"}
)
```
"""


def properties_of(name: str) -> list[str]:
    """Every property of an L1 class and of its structures, as Python names them."""
    cls = CLASSES[name][1]
    found = [each for each in _parameters(cls) if each not in ("scope", "id")]
    for structure, value in sorted(vars(cls).items()):
        if inspect.isclass(value) and structure.endswith("Property"):
            found += [f"{structure}.{each}" for each in _parameters(value)]
    return found


def left_out(name: str, property: str) -> LeftOut | None:
    """Why a property is left out, by itself or with its structure; ``None`` where it is not."""
    return LEFT_OUT[name].get(property) or LEFT_OUT[name].get(property.partition(".")[0])


def keyword(name: str, property: str) -> str | None:
    """The keyword that sets a property, as a row shows it; ``None`` where there is none."""
    return TYPED[name].get(property) or (
        None if left_out(name, property) else keyword_of(name, property)
    )


def missing() -> list[str]:
    """The properties that have no row."""
    return [
        f"{name}.{each}"
        for name in CLASSES
        for each in properties_of(name)
        if keyword(name, each) is None and left_out(name, each) is None
    ]


def superfluous() -> list[str]:
    """The rows without a property, and those that repeat or contradict another."""
    return [
        f"{name}.{row}"
        for name in CLASSES
        for row in (*TYPED[name], *LEFT_OUT[name])
        if not _stands_for_one(name, row)
    ]


def render() -> str:
    """The whole page."""
    parts = [HEAD, *(line for name in CLASSES for line in _chapter(name))]
    parts += [
        "\n## Not supported\n",
        "| capability | what it is, and what to use instead |",
        "|---|---|",
    ]
    parts += [f"| {what} | {why} |" for what, why in NOT_YET.items()]
    return "\n".join(parts) + "\n"


def _chapter(name: str) -> Iterator[str]:
    attribute = CLASSES[name][0]
    properties = properties_of(name)
    typed = {each: row for each in properties if (row := keyword(name, each)) is not None}
    yield f"\n## {name}\n"
    yield f"`{attribute}`: {len(typed)} of {len(properties)} properties have a keyword.\n"
    yield "| property | keyword |\n|---|---|"
    yield from (f"| `{each}` | {row} |" for each, row in typed.items())
    yield (
        f"\n| without a keyword | reason | `{attribute}.add_property_override` of |\n|---|---|---|"
    )
    for each, why in LEFT_OUT[name].items():
        yield f"| `{each}` | {why.reason} | {'none' if why.path is None else f'`{why.path}`'} |"


def _parameters(cls: type) -> list[str]:
    return [each for each in inspect.signature(vars(cls)["__init__"]).parameters if each != "self"]


def _stands_for_one(name: str, row: str) -> bool:
    properties = properties_of(name)
    is_there = row in properties or any(each.startswith(f"{row}.") for each in properties)
    if row not in TYPED[name]:
        return is_there
    return is_there and left_out(name, row) is None and keyword_of(name, row) != TYPED[name][row]


if __name__ == "__main__":
    OUTPUT.write_text(render(), encoding="utf-8")
    print(f"wrote {OUTPUT}")
