"""Checks the environment of a container of a language model, by the table ``facts/containers.json``.

The table has a row for each kind of AWS's images: the variables that its start script reads, and what it does
with their values. An error is reported only where AWS's script leaves no other result. Images of your own may
have another script, so they get warnings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
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
_LORA = "VLLM_ALLOW_RUNTIME_LORA_UPDATING", "SM_VLLM_ENABLE_LORA"


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
    model_is_required: bool
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
    true_by_default: Sequence[str]

    @property
    def source(self) -> str:
        return str(load("containers")["sources"][self.name])

    @property
    def names(self) -> frozenset[str]:
        """The arguments that the server has; empty if they are not known."""
        return engine_arguments().union(self.other_names) if self.has_vllm_names else frozenset()

    def argument(self, variable: str) -> str:
        """Return the argument that a variable sets, without the ``no_`` of a flag."""
        return variable.removeprefix(self.prefix).lower().removeprefix("no_" if self.abbreviates else "")

    def knows(self, argument: str) -> bool:
        return argument in self.names or (
            self.abbreviates and any(name.startswith(argument) for name in self.names)
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
        return any(environment.get(name) or any(name.startswith(each) for each in short) for name in names)

    def size(self, names: Sequence[str]) -> int | None:
        """Return a factor of the number of GPUs: 1 by default, ``None`` if it is not known."""
        first = next((name for name in names if self.given.environment.get(name)), None)
        if first is None:
            return None if self.has(names) else 1
        return int(self.value(first)) if re.fullmatch("0*[1-9][0-9]{0,3}", self.value(first)) else None

    def problem(self, code: str, variable: str, message: str, hint: str) -> Finding:
        unsure = self.has(self.kind.unsure) or (
            self.given.has_model_data and "model_data" in self.kind.unsure
        )
        severity = Severity.WARNING if unsure else Severity.ERROR
        return Finding(f"container-{code}", severity, f'environment["{variable}"]', message, hint)


def _other_prefix(container: _Container) -> Iterator[Finding]:
    kind = container.kind
    for name in container.given.environment:
        other = next((each for each in _kinds() if each is not kind and name.startswith(each.prefix)), None)
        if other is not None:
            near = kind.nearest(other.argument(name))
            hint = "remove it" if near is None else f"did you mean {near}? Otherwise remove it"
            message = f"is a variable of {other.name}, and the image of {kind.name} ignores it"
            yield container.problem("other-image", name, message, hint)


def _model(container: _Container) -> Iterator[Finding]:
    given, kind = container.given, container.kind
    if given.has_model_data or container.has(kind.model):
        return
    hint = "set model_data to the files of the model in S3"
    if not given.is_isolated:
        hint += f", or {kind.model[0]} to its id"
    found = container.problem("no-model", kind.model[0], f"no model is set, and {kind.without_model}", hint)
    yield found if kind.model_is_required else replace(found, severity=Severity.WARNING)


def _values(container: _Container) -> Iterator[Finding]:
    for row in container.kind.values:
        value = container.value(row["variable"])
        if value and not re.fullmatch(row["accepts"], value):
            message = f'{row["message"]}, got "{value}"'
            yield container.problem(row["code"], row["variable"], message, row["hint"])


def _parallel(container: _Container) -> Iterator[Finding]:
    kind, gpus = container.kind, container.given.gpus
    sizes = [container.size(names) for names in kind.parallel]
    if is_token(gpus) or gpus < 1 or None in sizes or not sizes:
        return
    used, first = prod(each or 1 for each in sizes), kind.parallel[0]
    variable = next((name for name in first if container.value(name)), first[0])
    if used > gpus:
        message = f"{kind.name} needs {used} GPUs, and each copy reserves {gpus:g}"
        hint = f"lower it, or set number_of_accelerator_devices to {used}"
        yield container.problem("parallel-size", variable, message, hint)
    elif used < gpus and kind.unused_unless is not None and not container.has(kind.unused_unless):
        message = f"{kind.name} uses {used} of the {gpus:g} GPUs that each copy reserves"
        hint = f'set it to "{gpus * (sizes[0] or 1) // used:g}", or number_of_accelerator_devices to {used}'
        found = container.problem("unused-gpus", variable, message, hint)
        yield replace(found, severity=Severity.WARNING)


def _hub(container: _Container) -> Iterator[Finding]:
    given, kind = container.given, container.kind
    has_cache = given.has_model_data and container.has(load("containers")["caches"])
    if not given.is_isolated or has_cache:
        return
    fix = "remove it" if given.has_model_data else "remove it, and set model_data to the files in S3"
    for name in (*kind.hub, *(() if given.has_model_data else kind.hub_without_model_data)):
        value = container.value(name)
        if _HUB.fullmatch(value):
            message = f'"{value}" would be downloaded, and the endpoint has network isolation'
            yield container.problem("hub-model", name, message, fix)


def _lora(container: _Container) -> Iterator[Finding]:
    switch, enable = _LORA
    is_on = container.value(switch).lower() in ("1", "true") and enable.startswith(container.kind.prefix)
    given = container.given.environment.get(enable, "")
    if is_on and not is_token(given) and given.strip().lower() != "true":
        message = f"adapters cannot be loaded while {enable} is not true"
        yield container.problem("lora", switch, message, f'set {enable} to "true", or remove this')


def _false(container: _Container) -> Iterator[Finding]:
    kind = container.kind
    for flag in kind.true_by_default:
        name = f"{kind.prefix}{flag.upper()}"
        if container.value(name).lower() == "false":
            message = "the image drops the value false, and the flag is true by default"
            hint = f'write {kind.prefix}NO_{flag.upper()} with the value "true"'
            yield replace(container.problem("false-flag", name, message, hint), severity=Severity.WARNING)


def _unknown(container: _Container) -> Iterator[Finding]:
    kind = container.kind
    for name in container.own:
        argument = kind.argument(name)
        near = None if kind.knows(argument) else kind.nearest(argument)
        if near is not None:
            hint = f"did you mean {near}? Acknowledge this if your version has the argument"
            found = container.problem("unknown-variable", name, f"{kind.unknown}, got {argument}", hint)
            yield replace(found, severity=Severity.WARNING)


_RULES: tuple[Callable[[_Container], Iterator[Finding]], ...] = (
    _other_prefix,
    _model,
    _values,
    _parallel,
    _hub,
    _lora,
    _false,
    _unknown,
)


def container_findings(container: ContainerUnderCheck) -> list[Finding]:
    """Return what the start script of the image would refuse, ignore or misread in the environment.

    Findings about images that are not AWS's are warnings.
    """
    found = _URI.fullmatch(image_uri(container.image))
    repository, tag = (found["repository"], found["tag"]) if found else ("", "")
    is_aws = found is not None and found["account"] in load("containers")["accounts"]
    kind = next((each for each in _kinds() if repository in each.repositories), None)
    if kind is None and not is_aws:
        prefixes = [
            each for each in _kinds() if any(name.startswith(each.prefix) for name in container.environment)
        ]
        kind = prefixes[0] if len(prefixes) == 1 else None
    if kind is None or (is_aws and not re.fullmatch(kind.tags, tag)):
        return []
    findings = [each for rule in _RULES for each in rule(_Container(container, kind))]
    if is_aws and re.fullmatch(kind.ec2_tags, tag):
        findings.append(_ec2_image(kind, tag))
    warning = Severity.WARNING
    return [
        replace(each, source=kind.source, severity=each.severity if is_aws else warning) for each in findings
    ]


def _ec2_image(kind: _Kind, tag: str) -> Finding:
    message = f'is an image of {kind.name} for EC2, which SageMaker cannot call, got the tag "{tag}"'
    hint = 'use a tag of the same version with "sagemaker"'
    return Finding("container-image-for-ec2", Severity.ERROR, "image", message, hint)
