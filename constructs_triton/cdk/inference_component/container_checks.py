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
        argument = variable.removeprefix(self.prefix).lower()
        return argument.removeprefix("no_") if self.abbreviates else argument

    def knows(self, argument: str) -> bool:
        """Whether the server has an argument of this name, or one that it abbreviates."""
        if self.abbreviates:
            return any(name.startswith(argument) for name in self.names)
        return argument in self.names

    def nearest(self, argument: str) -> str | None:
        """Return the variable of the most similar argument that is known."""
        near = argument if argument in self.names else closest(argument, self.names)
        if near is None:
            return None
        return f"{self.prefix}{near.upper()}"


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
        """Whether one of the variables is set, or an abbreviation of it."""
        if any(self.given.environment.get(name) for name in names):
            return True
        if not self.kind.abbreviates:
            return False
        return any(name.startswith(tuple(self.own)) for name in names)

    def size(self, names: Sequence[str]) -> int | None:
        """Return a factor of the number of GPUs: 1 by default, ``None`` if it is not known."""
        set_variables = [name for name in names if self.given.environment.get(name)]
        if not set_variables:
            # An abbreviation sets the value, and which variable it stands for is not certain.
            return None if self.has(names) else 1

        value = self.value(set_variables[0])
        return int(value) if re.fullmatch("0*[1-9][0-9]{0,3}", value) else None

    def problem(
        self, code: str, variable: str, message: str, hint: str, level: str = "error"
    ) -> Finding:
        """Return a finding about a variable; a warning where AWS's script may do otherwise."""
        given = set(self.given.environment)
        if self.given.has_model_data:
            given.add("model_data")
        severity = Severity.WARNING if given.intersection(self.kind.unsure) else Severity(level)

        path = f'environment["{variable}"]'
        return Finding(f"container-{code}", severity, path, message, hint, self.kind.source)


def _other_prefix(container: _Container) -> Iterator[Finding]:
    """Find variables of another image's start script, which this one does not read."""
    kind = container.kind
    for name in container.given.environment:
        owners = [other for other in _kinds() if name.startswith(other.prefix)]
        owners = [other for other in owners if other is not kind]
        if not owners:
            continue

        near = kind.nearest(owners[0].argument(name))
        hint = f"did you mean {near}? If not, remove it"
        if near is None:
            hint = f"remove it, or write {kind.prefix}..."
        yield container.problem(
            "other-image",
            name,
            f"is a variable of {owners[0].name}, and the image of {kind.name} ignores it",
            hint,
        )


def _model(container: _Container) -> Iterator[Finding]:
    """Find a container without a model: neither files in S3 nor the id of one."""
    kind = container.kind
    if container.given.has_model_data or container.has(kind.model):
        return

    variable = kind.model[0]
    hint = f"set model_data to the files of the model in S3, or {variable} to its id"
    if container.given.is_isolated:
        hint = "set model_data to the files of the model in S3"
    message = f"no model is set, and {kind.without_model}"
    yield container.problem("no-model", variable, message, hint, kind.no_model)


def _values(container: _Container) -> Iterator[Finding]:
    """Find values that the start script refuses or reads as something else."""
    for row in container.kind.values:
        value = container.value(row["variable"])
        if not value or re.fullmatch(row["accepts"], value):
            continue

        # With this switch, the script does not read the value.
        switch = container.given.environment.get(row.get("unless_true", ""), "")
        if is_token(switch) or switch.lower() == "true":
            continue

        yield container.problem(
            row["code"],
            row["variable"],
            f'{row["message"]}, got "{value}"',
            row["hint"],
            row.get("severity", "error"),
        )


def _parallel(container: _Container) -> Iterator[Finding]:
    """Compare the GPUs that the server uses with those that each copy reserves."""
    kind = container.kind
    gpus = container.given.gpus
    if is_token(gpus) or gpus < 1 or not kind.parallel:
        return

    # Such as those of tensor and of pipeline parallelism: each multiplies the number of GPUs.
    sizes = [container.size(names) for names in kind.parallel]
    known_sizes = [size for size in sizes if size is not None]
    if len(known_sizes) < len(sizes):
        return
    used = prod(known_sizes)

    names_of_first = kind.parallel[0]
    given_names = [name for name in names_of_first if container.value(name)]
    variable = given_names[0] if given_names else names_of_first[0]
    if used > gpus:
        yield container.problem(
            "parallel-size",
            variable,
            f"{kind.name} needs {used} GPUs, and each copy reserves {gpus:g}",
            f"lower it, or set number_of_accelerator_devices to {used}",
        )
    elif used < gpus and kind.unused_unless is not None and not container.has(kind.unused_unless):
        yield container.problem(
            "unused-gpus",
            variable,
            f"{kind.name} uses {used} of the {gpus:g} GPUs that each copy reserves",
            f"set number_of_accelerator_devices to {used}, or raise {variable}",
            "warning",
        )


def _hub(container: _Container) -> Iterator[Finding]:
    """Find models that a container without network access would download."""
    given = container.given
    if not given.is_isolated:
        return

    names = [*container.kind.hub, *container.kind.hub_without_model_data]
    fix = "remove it, and set model_data to the files in S3"
    if given.has_model_data:
        # The files may have the cache of the hub, in which the server finds the model.
        if container.has(load("containers")["caches"]):
            return
        names = list(container.kind.hub)
        fix = "remove it"

    for name in names:
        value = container.value(name)
        if _HUB.fullmatch(value):
            message = f'"{value}" would be downloaded, and the endpoint has network isolation'
            yield container.problem("hub-model", name, message, fix)


def _unknown(container: _Container) -> Iterator[Finding]:
    """Find arguments that the server does not have, if a similar one exists."""
    kind = container.kind
    for name in container.own:
        argument = kind.argument(name)
        if kind.knows(argument):
            continue
        near = kind.nearest(argument)
        if near is None:
            continue

        yield container.problem(
            "unknown-variable",
            name,
            f"{kind.unknown}, got {argument}",
            f"did you mean {near}? Acknowledge this if your version has the argument",
            "warning",
        )


def _triton(container: ContainerUnderCheck) -> Iterator[Finding]:
    """Find variables of Triton's start script, which an image of your own may have."""
    for name in container.environment:
        if name.startswith("SAGEMAKER_TRITON_"):
            yield Finding(
                "container-of-triton",
                Severity.ERROR,
                f'environment["{name}"]',
                "is a variable of Triton",
                "remove it, use TritonInferenceComponent, "
                "or acknowledge this if your image reads it",
                "triton server docker/sagemaker/serve",
            )


_RULES = (_other_prefix, _model, _values, _parallel, _hub, _unknown)


def container_findings(container: ContainerUnderCheck) -> list[Finding]:
    """Return what the start script of the image would refuse, ignore or misread in the environment.

    Findings about images that are not AWS's are warnings.
    """
    found = _URI.fullmatch(image_uri(container.image))
    is_aws = found is not None and found["account"] in load("containers")["accounts"]
    kind = _kind_of(container, found["repository"] if found else "", is_aws=is_aws)

    findings = list(_triton(container))
    if kind is not None:
        tag = found["tag"] if found else ""
        # A tag of AWS that the table does not know may have another start script.
        if not is_aws or re.fullmatch(kind.tags, tag):
            checked = _Container(container, kind)
            for rule in _RULES:
                findings += rule(checked)
            if is_aws:
                findings += _for_ec2(kind, tag)

    if is_aws:
        return findings
    return [replace(finding, severity=Severity.WARNING) for finding in findings]


def _kind_of(container: ContainerUnderCheck, repository: str, *, is_aws: bool) -> _Kind | None:
    """Return the kind of an image by its repository, or by the variables of an image of your own.

    ``None`` if it is not known, or if it could be several.
    """
    kinds = [kind for kind in _kinds() if repository in kind.repositories]
    if not kinds and not is_aws:
        kinds = [kind for kind in _kinds() if _Container(container, kind).own]
    return kinds[0] if len(kinds) == 1 else None


def _for_ec2(kind: _Kind, tag: str) -> Iterator[Finding]:
    """Find an image that has no web server for SageMaker."""
    if re.fullmatch(kind.ec2_tags, tag):
        yield Finding(
            "container-image-for-ec2",
            Severity.ERROR,
            "image",
            f'is an image of {kind.name} for EC2, which SageMaker cannot call, got the tag "{tag}"',
            'use a tag of the same version with "sagemaker"',
            kind.source,
        )
