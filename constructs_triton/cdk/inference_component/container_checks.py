"""Checks the environment of a container of a language model, by the table
``facts/containers.json``.

The table has a row for each kind of AWS's images: the variables that its start script reads, and
what it does with their values. An error is reported only where AWS's script leaves no other result.
Images of your own may have another script, so they get warnings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import prod

from constructs_triton.cdk.options.serving_image import ServingImage, image_uri
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.spelling import closest
from constructs_triton_core.tokens import is_token
from triton_model_check.facts.backend_releases import engine_arguments
from triton_model_check.facts.published import load

_URI = re.compile(r"(?:(?P<account>\d{12})\.[^/]+/|.*/)?(?P<repository>[\w.-]+)[:@](?P<tag>.+)")
# The id of a model, such as "Qwen/Qwen3-8B", or a URL; no path of the container.
_HUB = re.compile(r"(?!opt/ml)(?:\w+://.+|[\w-][\w.-]*(?:/[\w.-]+)?(?::[\w.-]+)?)")


@dataclass(frozen=True)
class ContainerUnderCheck:
    """What is known about a container at synth. ``gpus`` is the number that each copy reserves."""

    image: ServingImage
    environment: Mapping[str, str]
    gpus: float
    has_model_data: bool
    is_isolated: bool


@dataclass(frozen=True)
class _Kind:
    """A row of the table, whose ``columns`` say what each field means."""

    name: str
    repositories: Sequence[str]
    tags: str
    ec2_tags: str
    prefix: str
    model: Sequence[str]
    without_model: str
    no_model: str
    hub: Sequence[str]
    hub_without_model_data: Sequence[str]
    parallel: Sequence[Sequence[str]]
    unused_unless: Sequence[str] | None
    unsure: Sequence[str]
    values: Sequence[Mapping[str, str]]
    unknown: str
    has_vllm_names: bool
    abbreviates: bool
    other_names: Sequence[str]

    @property
    def source(self) -> str:
        return str(load("containers")["sources"][self.name])

    @property
    def names(self) -> frozenset[str]:
        """The arguments that the server has; empty if they are not known."""
        return engine_arguments().union(self.other_names) if self.has_vllm_names else frozenset()

    def argument(self, variable: str) -> str:
        """Return the argument that a variable sets, without the ``no_`` of a flag."""
        return (
            variable.removeprefix(self.prefix)
            .lower()
            .removeprefix("no_" if self.abbreviates else "")
        )

    def knows(self, argument: str) -> bool:
        return any(
            name.startswith(argument) if self.abbreviates else name == argument
            for name in self.names
        )

    def nearest(self, argument: str) -> str | None:
        """Return the variable of the most similar argument that is known."""
        near = argument if argument in self.names else closest(argument, self.names)
        return None if near is None else f"{self.prefix}{near.upper()}"


@cache
def _kinds() -> tuple[_Kind, ...]:
    return tuple(_Kind(**row) for row in load("containers")["kinds"])


@dataclass(frozen=True)
class _Container:
    """A container whose kind is known."""

    given: ContainerUnderCheck
    kind: _Kind

    @property
    def own(self) -> Mapping[str, str]:
        """The variables that the start script reads, with tokens."""
        variables = self.given.environment.items()
        return {name: value for name, value in variables if name.startswith(self.kind.prefix)}

    def value(self, name: str) -> str:
        """Return the value of a variable; ``""`` if it is not set, or a token."""
        value = self.given.environment.get(name, "")
        return "" if is_token(value) else value.strip()

    def has(self, names: Sequence[str]) -> bool:
        """Whether one of the variables is set, or of its abbreviations."""
        environment = self.given.environment
        short = self.own if self.kind.abbreviates else ()
        return any(
            environment.get(name) or any(name.startswith(each) for each in short) for name in names
        )

    def size(self, names: Sequence[str]) -> int | None:
        """Return a factor of the number of GPUs: 1 by default, ``None`` if it is not known."""
        first = next((name for name in names if self.given.environment.get(name)), None)
        if first is None:
            return None if self.has(names) else 1
        return (
            int(self.value(first)) if re.fullmatch("0*[1-9][0-9]{0,3}", self.value(first)) else None
        )

    def problem(
        self, code: str, variable: str, message: str, hint: str, level: str = "error"
    ) -> Finding:
        given = {*self.given.environment} | ({"model_data"} if self.given.has_model_data else set())
        severity = Severity.WARNING if given.intersection(self.kind.unsure) else Severity(level)
        path = f'environment["{variable}"]'
        return Finding(f"container-{code}", severity, path, message, hint, self.kind.source)


def _other_prefix(container: _Container) -> Iterator[Finding]:
    kind = container.kind
    for name in container.given.environment:
        other = next(
            (each for each in _kinds() if each is not kind and name.startswith(each.prefix)), None
        )
        if other is not None:
            near = kind.nearest(other.argument(name))
            hint = (
                f"did you mean {near}? If not, remove it"
                if near
                else f"remove it, or write {kind.prefix}..."
            )
            message = f"is a variable of {other.name}, and the image of {kind.name} ignores it"
            yield container.problem("other-image", name, message, hint)


def _model(container: _Container) -> Iterator[Finding]:
    given, kind = container.given, container.kind
    if not given.has_model_data and not container.has(kind.model):
        hint = "set model_data to the files of the model in S3"
        if not given.is_isolated:
            hint += f", or {kind.model[0]} to its id"
        message = f"no model is set, and {kind.without_model}"
        yield container.problem("no-model", kind.model[0], message, hint, kind.no_model)


def _values(container: _Container) -> Iterator[Finding]:
    for row in container.kind.values:
        name, switch = row["variable"], row.get("unless_true", "")
        value, other = container.value(name), container.given.environment.get(switch, "")
        if (
            value
            and not re.fullmatch(row["accepts"], value)
            and not (is_token(other) or other.lower() == "true")
        ):
            message = f'{row["message"]}, got "{value}"'
            yield container.problem(
                row["code"], name, message, row["hint"], row.get("severity", "error")
            )


def _parallel(container: _Container) -> Iterator[Finding]:
    kind, gpus = container.kind, container.given.gpus
    sizes = [size for names in kind.parallel if (size := container.size(names))]
    if is_token(gpus) or gpus < 1 or not sizes or len(sizes) < len(kind.parallel):
        return
    used, first = prod(sizes), kind.parallel[0]
    variable = next((name for name in first if container.value(name)), first[0])
    if used > gpus:
        message = f"{kind.name} needs {used} GPUs, and each copy reserves {gpus:g}"
        hint = f"lower it, or set number_of_accelerator_devices to {used}"
        yield container.problem("parallel-size", variable, message, hint)
    elif used < gpus and kind.unused_unless is not None and not container.has(kind.unused_unless):
        message = f"{kind.name} uses {used} of the {gpus:g} GPUs that each copy reserves"
        hint = f"set number_of_accelerator_devices to {used}, or raise {variable}"
        yield container.problem("unused-gpus", variable, message, hint, "warning")


def _hub(container: _Container) -> Iterator[Finding]:
    given, kind = container.given, container.kind
    names, fix = (
        (*kind.hub, *kind.hub_without_model_data),
        "remove it, and set model_data to the files in S3",
    )
    if given.has_model_data:
        names, fix = (*kind.hub,), "remove it"
        if container.has(load("containers")["caches"]):
            return
    for name in names if given.is_isolated else ():
        if _HUB.fullmatch(container.value(name)):
            message = (
                f'"{container.value(name)}" would be downloaded, '
                "and the endpoint has network isolation"
            )
            yield container.problem("hub-model", name, message, fix)


def _unknown(container: _Container) -> Iterator[Finding]:
    kind = container.kind
    for name in container.own:
        argument = kind.argument(name)
        near = None if kind.knows(argument) else kind.nearest(argument)
        if near is not None:
            hint = f"did you mean {near}? Acknowledge this if your version has the argument"
            yield container.problem(
                "unknown-variable", name, f"{kind.unknown}, got {argument}", hint, "warning"
            )


def _triton(container: ContainerUnderCheck) -> Iterator[Finding]:
    """Find variables of Triton's start script, which an image of your own may have."""
    for name in container.environment:
        if name.startswith("SAGEMAKER_TRITON_"):
            hint = (
                "remove it, use TritonInferenceComponent, "
                "or acknowledge this if your image reads it"
            )
            message, source = "is a variable of Triton", "triton server docker/sagemaker/serve"
            path = f'environment["{name}"]'
            yield Finding("container-of-triton", Severity.ERROR, path, message, hint, source)


_RULES = (_other_prefix, _model, _values, _parallel, _hub, _unknown)


def container_findings(container: ContainerUnderCheck) -> list[Finding]:
    """Return what the start script of the image would refuse, ignore or misread in the environment.

    Findings about images that are not AWS's are warnings.
    """
    found = _URI.fullmatch(image_uri(container.image))
    repository, tag = (found["repository"], found["tag"]) if found else ("", "")
    is_aws = found is not None and found["account"] in load("containers")["accounts"]
    kinds = [each for each in _kinds() if repository in each.repositories]
    if not kinds and not is_aws:
        kinds = [each for each in _kinds() if _Container(container, each).own]
    findings = [*_triton(container)]
    if len(kinds) == 1 and (not is_aws or re.fullmatch(kinds[0].tags, tag)):
        checked = _Container(container, kinds[0])
        findings += [each for rule in _RULES for each in rule(checked)]
        findings += _for_ec2(kinds[0], tag) if is_aws else ()
    return findings if is_aws else [replace(each, severity=Severity.WARNING) for each in findings]


def _for_ec2(kind: _Kind, tag: str) -> Iterator[Finding]:
    if re.fullmatch(kind.ec2_tags, tag):
        message = (
            f'is an image of {kind.name} for EC2, which SageMaker cannot call, got the tag "{tag}"'
        )
        hint = 'use a tag of the same version with "sagemaker"'
        yield Finding(
            "container-image-for-ec2", Severity.ERROR, "image", message, hint, kind.source
        )
