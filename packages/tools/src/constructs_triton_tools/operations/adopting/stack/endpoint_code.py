"""An endpoint with its variants as statements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from constructs_triton_core.cloud_assembly.endpoints import instance_types_of
from constructs_triton_tools.operations.adopting.models import AdoptedModels
from constructs_triton_tools.operations.adopting.python_text import (
    Answer,
    Call,
    Items,
    Options,
    call,
    literal,
    options_of,
)
from constructs_triton_tools.operations.adopting.stack.endpoint_options import endpoint_options, host_options
from constructs_triton_tools.operations.adopting.stack.scaling_code import add_scaling
from constructs_triton_tools.operations.adopting.stack.stack_code import Repositories, StackCode
from constructs_triton_tools.operations.adopting.stack.variant_code import (
    ami_options,
    container_options,
    fleet_options,
    instance_options,
    machine_options,
    model_option,
    routing_options,
)
from triton_model_check.facts.images import version_of_image

#: What a variant takes from its endpoint unless it sets its own, and what the endpoint must have.
_FROM_FIRST = ("model_repository", "instance_type")


@dataclass(frozen=True, slots=True)
class _Variant:
    answer: Answer
    models: AdoptedModels
    options: Options

    @property
    def name(self) -> str:
        return str(self.answer["VariantName"])


def add_endpoint(code: StackCode, repositories: Repositories, naming: Options) -> str | None:
    """Add the endpoint and its scaling; return its variable, or ``None`` if its models cannot be read."""
    running = code.running
    shared = endpoint_options(code)
    is_asynchronous = "async_inference" in shared
    found = [_variant(code, repositories, each, is_asynchronous) for each in running.variants]
    variants = [each for each in found if each is not None]
    if len(variants) != len(found):
        return None
    first, models = variants[0], [running.models[each.answer["ModelName"]] for each in variants]
    networks = [(each.get("VpcConfig"), each.get("EnableNetworkIsolation", False)) for each in models]
    if any(each != networks[0] for each in networks):
        code.adoption.refuse(
            "models-differ",
            "the models of the variants differ in VPC or network isolation; those of the first are used",
        )
    common = _common(variants)
    options: Options = {
        "model_repository": common.pop("model_repository"),
        **model_option(first.models, "ensemble" if first.models.is_ensemble else "model"),
        **naming,
        **common,
        **_variants(code, variants, common),
        **host_options(code, models[0]),
        **shared,
    }
    construct = "TritonEnsembleEndpoint" if first.models.is_ensemble else "TritonEndpoint"
    if first.models.is_multi_model:
        construct = "TritonMultiModelEndpoint"
        cache = running.container(first.answer["ModelName"]).get("MultiModelConfig", {})
        options |= options_of(cache, "ModelCacheSetting")
    endpoint = code.add("endpoint", call(construct, "self", code.new_id("Endpoint"), **options))
    for each in variants:
        scaled = endpoint if len(variants) == 1 else f"{endpoint}.variant({literal(each.name)})"
        instance_type = instance_types_of(each.answer)[0]
        add_scaling(code, scaled, f"endpoint/{running.name}/variant/{each.name}", instance_type)
    return endpoint


def _variant(
    code: StackCode, repositories: Repositories, answer: Answer, is_asynchronous: bool
) -> _Variant | None:
    model_name = answer["ModelName"]
    found = repositories.of(model_name, instance_types_of(answer)[0])
    if found is None:
        return None
    variable, models = found
    version = version_of_image(code.running.container(model_name).get("Image"))
    options: Options = {
        "model_repository": variable,
        **instance_options(repositories, answer),
        **fleet_options(code, answer),
        **machine_options(code, answer, models),
        **routing_options(code, answer, is_default=not (is_asynchronous or models.is_multi_model)),
        **container_options(code, model_name, answer, models),
        **ami_options(answer, [version]),
    }
    return _Variant(answer, models, options)


def _common(variants: Sequence[_Variant]) -> Options:
    """Return the options that all variants share, and those of the first that the endpoint must have."""
    return {
        name: value
        for name, value in variants[0].options.items()
        if name in _FROM_FIRST or all(each.options.get(name) == value for each in variants)
    }


def _variants(code: StackCode, variants: Sequence[_Variant], common: Options) -> Options:
    first, *others = variants
    if not others:
        return {} if first.name == "AllTraffic" else {"variant_name": literal(first.name)}
    calls = [_variant_call(each, first, common) for each in variants]
    count = len(code.running.config["ProductionVariants"])
    return {"variants": Items(calls[:count]), **({"shadow_variant": calls[count]} if calls[count:] else {})}


def _variant_call(variant: _Variant, first: _Variant, common: Options) -> Call:
    shared = {**common, "model_repository": first.options["model_repository"]}
    has_own_model = variant.models.model != first.models.model
    return call(
        "TritonVariant",
        variant_name=literal(variant.name),
        **(model_option(variant.models) if has_own_model else {}),
        **{name: value for name, value in variant.options.items() if shared.get(name) != value},
    )
