"""The environment of a container: the endpoint's, the variant's over it,
and what the models need.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from aws_cdk import SecretValue

from constructs_triton.cdk.options.environment import (
    TritonEnvironment,
    check_limits,
    check_variables,
)
from constructs_triton.cdk.options.secret_variables import variable_text
from constructs_triton.cdk.validation.property_types import shown
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.findings import Finding
from constructs_triton_core.tokens import is_lookup_dummy
from triton_model_check.facts.environment import variables

Environment = TritonEnvironment | Mapping[str, str | SecretValue]
_SERVER_PING_MODE = "SAGEMAKER_TRITON_PING_MODE"
_DEFAULT_MODEL = "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"
_ADDITIONAL_ARGS = "SAGEMAKER_TRITON_ADDITIONAL_ARGS"
_LOAD_MODEL = "--load-model="
_EVERY_MODEL = "*"


class EnvironmentLayers(tuple[Environment, ...]):
    """Environments of which each later one replaces variables of the same name."""

    __slots__ = ()

    @classmethod
    def of(cls, *layers: Environment | None) -> EnvironmentLayers:
        """Return the layers that are given."""
        return cls(layer for layer in layers if layer is not None)


def settle_environment(
    given: Environment | None,
    *,
    image_version: str | None,
    multi_model: bool,
    default_model: str | None,
    called_models: Sequence[str],
    packed_models: Sequence[str] | None = None,
) -> tuple[dict[str, str], list[Finding]]:
    """Return the variables of a container of one of our images, and what the checks find in them.

    ``called_models`` are loaded at the start of the server, because others call them.
    ``packed_models`` are the models in the archive, the default model first; ``None`` if they are
    not known.

    Raises:
        InvalidValueError: the image or SageMaker would refuse a value, or the archive lacks a model
            to load.
    """
    layers = given if isinstance(given, EnvironmentLayers) else EnvironmentLayers.of(given)
    environment, overrides = _flatten(layers)
    environment = _with_default_model(environment, overrides, default_model)
    environment = _with_called_models(environment, overrides, called_models)

    rendered = environment.to_variables(image_version=image_version, multi_model=multi_model)
    rendered |= overrides
    if packed_models is not None:
        _refuse_missing_models(rendered.get(_ADDITIONAL_ARGS, ""), packed_models)
    check_limits(rendered)

    found = environment.check(image_version=image_version, multi_model=multi_model)
    if not all(isinstance(layer, TritonEnvironment) for layer in layers):
        # The variables of a mapping without a keyword were put in ``extra``.
        found = [
            replace(finding, path=finding.path.replace("environment.extra[", "environment["))
            for finding in found
        ]
    found += check_variables(overrides, image_version=image_version, multi_model=multi_model)
    return rendered, found


def _flatten(layers: Sequence[Environment]) -> tuple[TritonEnvironment, dict[str, str]]:
    """Return one environment, and variables with a keyword that a mapping sets over it.

    Raises:
        InvalidValueError: a value of a mapping is not a string.
    """
    typed = TritonEnvironment()
    overrides: dict[str, str] = {}
    for layer in layers:
        if isinstance(layer, TritonEnvironment):
            typed = typed.merged_with(layer)
            # A keyword of a later layer replaces the variable of an earlier mapping.
            for keyword, row in variables().items():
                if _sets(layer, keyword):
                    overrides.pop(row.name, None)
        else:
            others, known = _split(layer)
            typed = replace(typed, extra={**typed.extra, **others})
            overrides |= known
    return typed, overrides


def _sets(environment: TritonEnvironment, keyword: str) -> bool:
    value = getattr(environment, keyword)
    return value is not None and value != ()


def _split(
    given: Mapping[str, str | SecretValue],
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the variables without a keyword, and those with one."""
    have_keyword = {row.name for row in variables().values()} | {_SERVER_PING_MODE}
    others: dict[str, str] = {}
    known: dict[str, str] = {}
    for name, value in given.items():
        text = variable_text(f'environment["{name}"]', value)
        if name in have_keyword:
            known[name] = text
        else:
            others[name] = text
    return others, known


def _with_default_model(
    environment: TritonEnvironment, overrides: Mapping[str, str], default_model: str | None
) -> TritonEnvironment:
    """Return the environment with the model that answers requests.

    Raises:
        InvalidValueError: another model is set as the default.
    """
    if default_model is None:
        return environment
    given = overrides.get(_DEFAULT_MODEL, environment.default_model_name)
    if given is not None and given != default_model and not is_lookup_dummy(given):
        raise InvalidValueError(
            f'environment: {_DEFAULT_MODEL} must be the model of this endpoint, "{default_model}", '
            f"got {shown(given)}; remove the variable"
        )
    return replace(environment, default_model_name=default_model)


def _with_called_models(
    environment: TritonEnvironment, overrides: dict[str, str], called: Sequence[str]
) -> TritonEnvironment:
    """Load the models that others call at the start of the server."""
    if not called:
        return environment

    arguments = overrides.pop(_ADDITIONAL_ARGS, "").split()
    loaded = set(environment.additional_models)
    loaded |= {word.removeprefix(_LOAD_MODEL) for word in arguments}
    missing = [name for name in called if name not in loaded]
    return replace(
        environment,
        additional_models=(*environment.additional_models, *missing),
        additional_args=(*environment.additional_args, *arguments),
    )


def _refuse_missing_models(arguments: str, packed_models: Sequence[str]) -> None:
    """Refuse models that the server would not find; it exits when it cannot load one."""
    loaded = [
        word.removeprefix(_LOAD_MODEL) for word in arguments.split() if word.startswith(_LOAD_MODEL)
    ]
    # The next synthesis has the names that are looked up.
    known = [name for name in loaded if not is_lookup_dummy(name)]
    missing = [name for name in known if name not in packed_models and name != _EVERY_MODEL]
    if missing:
        default = packed_models[0]
        names = json.dumps(missing)
        raise InvalidValueError(
            f'environment.additional_models: must be in the archive of model "{default}", got '
            f'{names[1:-1]}; set calls={{"{default}": {names}}} on the '
            "TritonModelRepository, which packs and loads them"
        )
