"""Writes the comparison with other libraries, from the table of features and ``peers.csv``."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

PROJECT = Path(__file__).parents[2]
PEERS: Mapping[str, tuple[str, str]] = {
    "alpha": ("sagemaker-alpha", "`aws-cdk.aws-sagemaker-alpha` 2.275.0a0"),
    "generative_ai": ("generative-ai", "`cdklabs.generative-ai-cdk-constructs` 0.1.320"),
    "solutions": ("solutions", "`aws-solutions-constructs` 2.105.0, the constructs of SageMaker endpoints"),
    "sdk_v2": ("SDK v2", "`sagemaker` 2.257.7, the SageMaker Python SDK"),
    "sdk_v3": ("SDK v3", "`sagemaker` 3.27.0"),
    "terraform_aws_ia": ("TF aws-ia", "Terraform `aws-ia/terraform-aws-sagemaker-endpoint`, commit 32a2138"),
    "terraform_huggingface": (
        "TF huggingface",
        "Terraform `philschmid/terraform-aws-sagemaker-huggingface`, commit a3ea21b",
    ),
}
ROW = re.compile(r"^\| (\d+) \| (.+?) \| ([a-z ]+) \| .* \|$", re.MULTILINE)
HEAD = """# Comparison with other libraries

What each library offers for SageMaker endpoints, in 114 capabilities. The other libraries were read and run
on 2026-11-20, in these versions:

{versions}

*raw*: only by passing CloudFormation properties through. *n/a*: does not apply. The evidence for this
library, and the limits of each capability, are in [Features](features.md).

{totals}

"""


def write_comparison(path: Path) -> None:
    """Write the page."""
    rows = compared()
    versions = "\n".join(f"- **{short}**: {name}" for short, name in PEERS.values())
    header = ["#", "capability", "constructs_triton", *(short for short, _ in PEERS.values())]
    table = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    table += ["| " + " | ".join(row) + " |" for row in rows]
    path.write_text(HEAD.format(versions=versions, totals=_totals(rows)) + "\n".join(table) + "\n")


def compared() -> list[list[str]]:
    """Return number, capability, this library and each other library of each row."""
    features = (PROJECT / "docs" / "reference" / "features.md").read_text(encoding="utf-8")
    with (Path(__file__).parent / "peers.csv").open(encoding="utf-8", newline="") as file:
        peers = {row["number"]: [row[name] for name in PEERS] for row in csv.DictReader(file)}
    return [[number, capability, ours, *peers[number]] for number, capability, ours in ROW.findall(features)]


def _totals(rows: Sequence[Sequence[str]]) -> str:
    names = ["constructs_triton", *(short for short, _ in PEERS.values())]
    counts = [[row[column] for row in rows].count("yes") for column in range(2, 2 + len(names))]
    lines = [f"| {name} | {count} |" for name, count in zip(names, counts, strict=True)]
    return "\n".join(["| library | capabilities with *yes* |", "|---|---|", *lines])
