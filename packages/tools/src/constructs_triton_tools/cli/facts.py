"""``constructs-triton facts``: what AWS and NVIDIA publish about images,
instance types and variables.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.facts.versions import is_at_least, parse_version
from constructs_triton_core.findings import Finding, Severity, format_findings
from constructs_triton_core.program.argument_types import add_common
from constructs_triton_core.program.exit_codes import EXIT_SUCCESS, EXIT_WRONG
from constructs_triton_core.untrusted.terminal import print_json, print_note, print_table
from triton_model_check.facts import images
from triton_model_check.facts.compatibility import VariantFacts, check_compatibility
from triton_model_check.facts.environment import variables
from triton_model_check.facts.inference_ami import default_inference_ami


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``facts image``, ``facts instance`` and ``facts environment``."""
    parser.description = (
        "Look up what AWS and NVIDIA publish. Works without a network and an account."
    )
    topics = parser.add_subparsers(dest="topic", required=True, metavar="TOPIC")
    image = _add_topic(
        topics, "image", "show the image URIs of a Triton release in a Region, and its versions"
    )
    add_common(image, "--region", required=True, help="AWS Region, for example eu-west-1")
    image.add_argument(
        "--version",
        default=images.DEFAULT_VERSION,
        metavar="V",
        help="Triton release (default: %(default)s)",
    )
    image.add_argument(
        "--instance-type",
        metavar="TYPE",
        help="show only the image for this type and check that they are compatible",
    )
    instance = _add_topic(topics, "instance", "show the hardware of an instance type")
    instance.add_argument("name", metavar="TYPE", help="for example ml.g5.xlarge")
    environment = _add_topic(
        topics, "environment", "list the environment variables that the container reads"
    )
    environment.add_argument(
        "--version", metavar="V", help="list only variables of this Triton release"
    )
    for topic in (image, instance, environment):
        add_common(topic, "--json")


def _add_topic(topics: Any, name: str, summary: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = topics.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
    )
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Print the facts; return 1 if the image and the instance type are not compatible."""
    if arguments.topic == "environment":
        return _run_environment(arguments)
    if arguments.topic == "image":
        answer, findings = _image(arguments)
    else:
        answer, findings = _instance(arguments)

    if arguments.json:
        print_json({**answer, "findings": [finding.to_dict() for finding in findings]})
    else:
        rows = [(name, _shown(value)) for name, value in answer.items()]
        print_table(("fact", "value"), rows)
        if findings:
            print_note(*format_findings(findings).split("\n"))
    has_errors = any(finding.severity is Severity.ERROR for finding in findings)
    return EXIT_WRONG if has_errors else EXIT_SUCCESS


def _image(arguments: argparse.Namespace) -> tuple[dict[str, Any], list[Finding]]:
    """Return what is published about an image, and what contradicts the instance type."""
    version = arguments.version
    published = images.image_version(version)
    backends = published.backends
    answer: dict[str, Any] = {
        "version": published.version,
        "python": published.python,
        "cuda": published.cuda,
        "tensorrt": published.tensorrt,
        "released_on": published.released_on,
        "min_compute_capability": published.min_compute_capability,
        "backends": None if backends is None else sorted(backends),
        "removed_backends": sorted(published.removed_backends),
        "newest_version_in_region": images.newest_version(arguments.region),
    }
    gpu_uri = images.image_uri(arguments.region, version, cpu=False)
    cpu_uri = images.image_uri(arguments.region, version, cpu=True)
    if arguments.instance_type is None:
        return {"gpu_uri": gpu_uri, "cpu_uri": cpu_uri, **answer}, []

    instance = InstanceType.of(arguments.instance_type)
    choice = default_inference_ami(version, instance)
    answer["inference_ami"] = choice.ami.version if choice.ami else None
    answer["inference_ami_certainty"] = choice.certainty
    findings = check_compatibility(VariantFacts(instance_type=instance, image_version=version))
    if choice.finding:
        findings.append(choice.finding)
    return {"uri": gpu_uri if instance.has_gpu else cpu_uri, **answer}, findings


def _instance(arguments: argparse.Namespace) -> tuple[dict[str, Any], list[Finding]]:
    instance = InstanceType.of(arguments.name)
    answer = {**asdict(instance), "supports_volume_size": instance.supports_volume_size}
    return answer, check_compatibility(VariantFacts(instance_type=instance))


def _run_environment(arguments: argparse.Namespace) -> int:
    """Print the variables that the container reads, of one version or of any."""
    if arguments.version is not None:
        parse_version(arguments.version, "--version")
    known = [asdict(variable) for variable in variables().values()]
    rows = [row for row in known if _is_read_by(arguments.version, row)]
    if arguments.json:
        print_json(rows)
        return 0

    columns = ("keyword", "name", "since", "default", "meaning")
    table = []
    for row in rows:
        table.append([_shown(row[column]) for column in columns])
    print_table(columns, table)
    return 0


def _is_read_by(version: str | None, row: Mapping[str, Any]) -> bool:
    """Return whether a version of the image reads a variable; ``None`` is any version."""
    if version is None:
        return True
    is_removed = row["until"] and is_at_least(version, row["until"])
    return is_at_least(version, row["since"]) and not is_removed


def _shown(value: Any) -> str:
    """Return a fact as a cell of a table."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, list) else str(value)
