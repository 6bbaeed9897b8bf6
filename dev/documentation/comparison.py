"""Writes the comparison with other libraries, from ``features.csv`` and ``peers.csv``."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

PEERS: Mapping[str, tuple[str, str]] = {
    "alpha": (
        "sagemaker-alpha",
        (
            "[`aws-cdk.aws-sagemaker-alpha`]"
            "(https://pypi.org/project/aws-cdk.aws-sagemaker-alpha/2.275.0a0/) "
            "2.275.0a0"
        ),
    ),
    "generative_ai": (
        "generative-ai",
        "[`cdklabs.generative-ai-cdk-constructs`]"
        "(https://pypi.org/project/cdklabs.generative-ai-cdk-constructs/0.1.320/) 0.1.320",
    ),
    "solutions": (
        "solutions",
        "[`aws-solutions-constructs`]"
        "(https://pypi.org/project/aws-solutions-constructs.aws-lambda-sagemakerendpoint/2.105.0/)"
        " 2.105.0, the constructs of SageMaker endpoints",
    ),
    "sdk_v2": (
        "SDK v2",
        (
            "[`sagemaker`](https://pypi.org/project/sagemaker/2.257.7/) 2.257.7, "
            "the SageMaker Python SDK"
        ),
    ),
    "sdk_v3": ("SDK v3", "[`sagemaker`](https://pypi.org/project/sagemaker/3.27.0/) 3.27.0"),
    "terraform_aws_ia": (
        "TF aws-ia",
        "Terraform [`aws-ia/terraform-aws-sagemaker-endpoint`]"
        "(https://github.com/aws-ia/terraform-aws-sagemaker-endpoint), commit 32a2138",
    ),
    "terraform_huggingface": (
        "TF huggingface",
        "Terraform [`philschmid/terraform-aws-sagemaker-huggingface`]"
        "(https://github.com/philschmid/terraform-aws-sagemaker-huggingface), commit a3ea21b",
    ),
}
#: What the other libraries have of the rows that were added later, and where it was read.
LATER = (
    (
        "**115**: `right_size` of SDK v2 and v3 compares instance types and environment variables "
        "in an Inference Recommender job "
        "([`inference_recommender_mixin.py`]"
        "(https://github.com/aws/sagemaker-python-sdk/blob/master/sagemaker-core/src/sagemaker/core/"
        "inference_recommender/inference_recommender_mixin.py)). "
        "`Model.tune` of v2 searches the tensor parallel degree of a DJL or TGI container on your "
        "machine, and `generate_deployment_recommendations` of v3 ranks configurations of language "
        "models. None of them changes instance groups or batching of Triton, so *partly*."
    ),
    (
        "**116**: no library writes code for an endpoint that exists. "
        "`Endpoint.from_endpoint_attributes` of sagemaker-alpha and `Endpoint.get` of SDK v3 only "
        "refer to it (row 72). Terraform itself can [write configuration]"
        "(https://developer.hashicorp.com/terraform/language/import/generating-configuration) "
        "of a resource that an import block names; this is experimental."
    ),
    (
        "**117**: no library has a page of an endpoint or of a local run. `interactive_apps` of "
        "SDK v2 and v3 opens TensorBoard and the profiler of training jobs in SageMaker Studio."
    ),
)
HEAD = """# Comparison with other libraries

What each library offers for SageMaker endpoints, in 117 capabilities. The other libraries were read
and run on 2026-11-20, in these versions:

{versions}

For rows 115 to 117, the same versions were read again on 2026-11-23, without running them:

{later}

*raw*: only by passing CloudFormation properties through. *n/a* and *not meaningful*: does not
apply, or ended by AWS. The column "test" has a test of this project that shows the capability. In
the source, `dev/documentation/assessed.csv` has the day, the words and the basis of each
assessment.

{totals}

## Other tools

These tools have some of the capabilities, for other platforms or in another form. They were read,
not run.

| tool | what it does | what it does better | capabilities |
|---|---|---|---|
{neighbours}

## All capabilities

"""


def write_comparison(path: Path) -> None:
    """Write the page."""
    rows, own = compared(), features()
    versions = "\n".join(f"- **{short}**: {name}" for short, name in PEERS.values())
    peers = [short for short, _ in PEERS.values()]
    header = ["#", "capability", "constructs_triton", "how, and limits", "test", *peers]
    table = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    for number, capability, status, *others in rows:
        cells = [
            number,
            capability,
            status,
            own[number]["limits"],
            _test(own[number]["tests"]),
            *others,
        ]
        table.append(f"| {' | '.join(cells)} |")
    neighbours = "\n".join(
        f"| [{tool['name']}]({tool['url']}) | {tool['does']} | {tool['better']} | "
        f"{tool['rows'].replace(' ', ', ')} |"
        for tool in _rows("neighbours.csv")
    )
    later = "\n".join(f"- {each}" for each in LATER)
    head = HEAD.format(versions=versions, later=later, totals=_totals(rows), neighbours=neighbours)
    path.write_text(head + "\n".join(table) + "\n", encoding="utf-8")


def features() -> dict[str, dict[str, str]]:
    """Return each capability by its number: name, status, how and with which limits, and tests."""
    return {row["number"]: row for row in _rows("features.csv")}


def compared() -> list[list[str]]:
    """Return number, capability, this library and each other library of each row."""
    peers = {row["number"]: [row[name] for name in PEERS] for row in _rows("peers.csv")}
    return [
        [number, row["capability"], row["status"], *peers[number]]
        for number, row in features().items()
    ]


def _rows(name: str) -> list[dict[str, str]]:
    with (Path(__file__).parent / name).open(encoding="utf-8", newline="") as file:
        return [*csv.DictReader(file)]


def _test(tests: str) -> str:
    """Return the name of the first test."""
    first = tests.partition(" ")[0]
    return f"`{first.rpartition('::')[2].rpartition('/')[2]}`" if first else ""


def _totals(rows: Sequence[Sequence[str]]) -> str:
    names = ["constructs_triton", *(short for short, _ in PEERS.values())]
    counts = [[row[column] for row in rows].count("yes") for column in range(2, 2 + len(names))]
    lines = [f"| {name} | {count} |" for name, count in zip(names, counts, strict=True)]
    return "\n".join(["| library | capabilities with *yes* |", "|---|---|", *lines])
