"""Checks of what must be known at synth, because models are read and packed then.

The dummy of a lookup passes: the next synthesis knows the value.
"""

from __future__ import annotations

from collections.abc import Sequence

from constructs_triton.cdk.validation.arguments import check_known_string
from constructs_triton.cdk.validation.property_types import check_type, shown
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.tokens import is_lookup_dummy, is_token
from triton_model_check.model_repository import ModelRepository


def known_name(name: str | None) -> str | None:
    """Return the name of a model that is written at synth.

    A name that is looked up later is not known yet, and the file has a name too.
    """
    if is_lookup_dummy(name):
        return None
    if name is not None:
        check_known_string("name", name, "resnet")
    return name


def check_known_number(property: str, value: object) -> None:
    """Check that a number is known when the configuration is written."""
    if value is not None and (is_token(value) or not isinstance(value, int)):
        raise InvalidValueError(
            f"{property}: must be a whole number that is known at synth, because the configuration "
            f"is written then, got {shown(value)}; write for example 8"
        )


def known_types(given: InstanceType | Sequence[InstanceType]) -> list[InstanceType]:
    """Return instance types as a list, in which only a lookup may stand for a name."""
    example = 'InstanceType.of("ml.g5.xlarge")'
    if not isinstance(given, list | tuple) or is_token(given):
        check_type("instance_type", given, (InstanceType, example))
    types = [given] if isinstance(given, InstanceType) else list(given)
    for each in types:
        check_type("instance_type", each, (InstanceType, example))
        if is_token(each.name) and not is_lookup_dummy(each.name):
            raise InvalidValueError(
                "instance_type: must be known at synth, because it selects the compiled models, "
                f"got {shown(each.name)}; write {example}"
            )
    return types


def refuse_tokens(property: str, repository: ModelRepository) -> None:
    """Check that the configurations that are written at synth have no value of the deployment."""
    for model in repository.models.values():
        text = (model.read(*model.config_parts) or b"").decode(errors="replace")
        # The dummy of a lookup is a token too, and the next synthesis has its value.
        if is_token(text) and not is_lookup_dummy(text):
            raise InvalidValueError(
                f'{property}: the configuration of model "{model.name}" must be known at synth, '
                "got a value that is known only at deployment; write the value"
            )
