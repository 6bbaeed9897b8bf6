"""An endpoint as statements: with its variants, or with inference components."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from constructs_triton_core.cloud_assembly.endpoints import DeclaredContainer, instance_types_of
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
from constructs_triton_tools.operations.adopting.stack.endpoint_options import (
    endpoint_options,
    host_options,
)
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
    timeout_options,
)
from constructs_triton_tools.operations.component_state import specifications_of
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
    """Add the endpoint and its scaling; return its variable,
    or ``None`` if its models cannot be read.
    """
    running = code.running
    shared = endpoint_options(code)
    is_asynchronous = "async_inference" in shared
    found = [_variant(code, repositories, variant, is_asynchronous) for variant in running.variants]
    variants = [variant for variant in found if variant is not None]
    if len(variants) != len(found):
        return None
    first = variants[0]
    models = [running.models[variant.answer["ModelName"]] for variant in variants]
    networks = [
        (model.get("VpcConfig"), model.get("EnableNetworkIsolation", False)) for model in models
    ]
    if any(network != networks[0] for network in networks):
        code.adoption.refuse(
            "models-differ",
            "the models of the variants differ in VPC or network isolation; "
            "those of the first are used",
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
    for variant in variants:
        scaled = endpoint if len(variants) == 1 else f"{endpoint}.variant({literal(variant.name)})"
        instance_type = instance_types_of(variant.answer)[0]
        add_scaling(code, scaled, f"endpoint/{running.name}/variant/{variant.name}", instance_type)
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
    """Return the options that all variants share,
    and those of the first that the endpoint must have.
    """
    common = {}
    for name, value in variants[0].options.items():
        is_shared = all(variant.options.get(name) == value for variant in variants)
        if is_shared or name in _FROM_FIRST:
            common[name] = value
    return common


def _variants(code: StackCode, variants: Sequence[_Variant], common: Options) -> Options:
    """Return the keywords for the variants: those of production come before the shadow."""
    first, *others = variants
    if not others:
        return {} if first.name == "AllTraffic" else {"variant_name": literal(first.name)}

    calls = [_variant_call(variant, first, common) for variant in variants]
    production_count = len(code.running.config["ProductionVariants"])
    options: Options = {"variants": Items(calls[:production_count])}
    if len(calls) > production_count:
        options["shadow_variant"] = calls[production_count]
    return options


def _variant_call(variant: _Variant, first: _Variant, common: Options) -> Call:
    shared = {**common, "model_repository": first.options["model_repository"]}
    has_own_model = variant.models.model != first.models.model
    return call(
        "TritonVariant",
        variant_name=literal(variant.name),
        **(model_option(variant.models) if has_own_model else {}),
        **{name: value for name, value in variant.options.items() if shared.get(name) != value},
    )


def add_component_endpoint(code: StackCode, repositories: Repositories, naming: Options) -> str:
    """Add the endpoint, its components and their scaling; return the variable of the endpoint."""
    running = code.running
    (variant,) = running.config["ProductionVariants"]
    name = variant["VariantName"]
    versions = {
        version_of_image(running.container(served).get("Image")) for served in running.models
    }
    # The components share the network of the configuration, or have that of their models.
    model: Answer = next((answer for answer in running.models.values() if answer), {})
    own = {member: running.config.get(member) for member in ("VpcConfig", "EnableNetworkIsolation")}
    network = {**model, **{name: value for name, value in own.items() if value}}
    options: Options = {
        **naming,
        **({} if name == "AllTraffic" else {"variant_name": literal(name)}),
        **instance_options(repositories, variant),
        **_fleet_options(code, variant),
        **options_of(variant, "VolumeSizeInGB"),
        **ami_options(variant, versions),
        **routing_options(code, variant, is_default=True),
        **host_options(code, network),
    }
    construct_id = code.new_id("Endpoint")
    endpoint = code.add(
        "endpoint", call("TritonComponentEndpoint", "self", construct_id, **options)
    )
    for component in running.components:
        _add_component(code, repositories, endpoint, component)
    return endpoint


def _fleet_options(code: StackCode, variant: Answer) -> Options:
    running = code.running.running_variant(variant["VariantName"])
    count = running.get("DesiredInstanceCount", variant.get("InitialInstanceCount", 1))
    managed = variant.get("ManagedInstanceScaling") or {}
    if managed.get("Status") != "ENABLED":
        managed = {}
        code.adoption.differ(
            "DescribeEndpointConfig.ProductionVariants.ManagedInstanceScaling",
            f"enabled with {count} to {count} instances, "
            "since the construct always lets SageMaker place copies",
        )
    bounds = {"MinInstanceCount": count, "MaxInstanceCount": count, **managed}
    found = options_of(bounds, "MinInstanceCount", "MaxInstanceCount", with_zero=True)
    if max(count, 1) != max(bounds["MinInstanceCount"], 1):
        found["initial_instance_count"] = literal(max(count, 1))
    policy = dict(managed.get("ScaleInPolicy") or {})
    policy["CooldownInSeconds"] = policy.get("CooldownInMinutes", 0) * 60
    given = options_of(policy, "Strategy", "CooldownInSeconds", "MaximumStepSize")
    names = ("scale_in_strategy", "scale_in_cooldown", "scale_in_maximum_step_size")
    parts = {name: given.get(name.removeprefix("scale_in_")) for name in names}
    return {**found, **{name: value for name, value in parts.items() if value is not None}}


def _add_component(
    code: StackCode, repositories: Repositories, endpoint: str, component: Answer
) -> None:
    name = component["InferenceComponentName"]
    (specification, *others) = specifications_of(component)
    model_name = specification.get("ModelName", "")
    container = code.running.container(model_name)
    if others or not container or not DeclaredContainer.of(name, container).is_triton:
        code.adoption.refuse(
            "inference-component",
            f"inference component {name}: is not carried over, since it has no single model with a "
            "Triton container that can be read; add it by hand in app.py",
        )
        return
    (variant,) = code.running.config["ProductionVariants"]
    found = repositories.of(model_name, instance_types_of(variant)[0])
    if found is None:
        return
    options: Options = {
        "endpoint": endpoint,
        "model_repository": found[0],
        **_component_options(code, component, specification, found[1]),
        **container_options(code, model_name, variant, found[1]),
    }
    construct = call("TritonInferenceComponent", "self", code.new_id(name), **options)
    add_scaling(code, code.add("component", construct), f"inference-component/{name}", None)


def _component_options(
    code: StackCode, component: Answer, specification: Answer, models: AdoptedModels
) -> Options:
    name = component["InferenceComponentName"]
    path = f"DescribeInferenceComponent[{name}].Specification.StartupParameters"
    count = component.get("RuntimeConfig", {}).get("DesiredCopyCount", 1)
    scheduling = specification.get("SchedulingConfig") or {}
    imbalance = (scheduling.get("AvailabilityZoneBalance") or {}).get("MaxImbalance")
    return {
        **model_option(models, "ensemble" if models.is_ensemble else "model"),
        "inference_component_name": literal(code.new_name(name)),
        **({"copy_count": literal(count)} if count > 1 else {}),
        **options_of(
            specification.get("ComputeResourceRequirements") or {},
            "MinMemoryRequiredInMb",
            "MaxMemoryRequiredInMb",
            "NumberOfAcceleratorDevicesRequired",
            "NumberOfCpuCoresRequired",
        ),
        **timeout_options(code, path, specification.get("StartupParameters") or {}, models),
        **options_of(specification.get("DataCacheConfig") or {}, "EnableCaching", with_zero=True),
        **options_of(scheduling, "PlacementStrategy"),
        **({"max_zone_imbalance": literal(imbalance)} if imbalance else {}),
    }
