"""An endpoint with inference components as statements."""

from __future__ import annotations

from constructs_triton_core.cloud_assembly.endpoints import DeclaredContainer, instance_types_of
from constructs_triton_tools.operations.adopting.models import AdoptedModels
from constructs_triton_tools.operations.adopting.python_text import Answer, Options, call, literal, options_of
from constructs_triton_tools.operations.adopting.stack.endpoint_options import host_options
from constructs_triton_tools.operations.adopting.stack.scaling_code import add_scaling
from constructs_triton_tools.operations.adopting.stack.stack_code import Repositories, StackCode
from constructs_triton_tools.operations.adopting.stack.variant_code import (
    ami_options,
    container_options,
    instance_options,
    model_option,
    routing_options,
    timeout_options,
)
from constructs_triton_tools.operations.component_state import specifications_of
from triton_model_check.facts.images import version_of_image


def add_component_endpoint(code: StackCode, repositories: Repositories, naming: Options) -> str:
    """Add the endpoint, its components and their scaling; return the variable of the endpoint."""
    running = code.running
    (variant,) = running.config["ProductionVariants"]
    name = variant["VariantName"]
    versions = {version_of_image(running.container(each).get("Image")) for each in running.models}
    # The components share the network of the configuration, or have that of their models.
    model: Answer = next((each for each in running.models.values() if each), {})
    own = {each: running.config.get(each) for each in ("VpcConfig", "EnableNetworkIsolation")}
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
    endpoint = code.add("endpoint", call("TritonComponentEndpoint", "self", construct_id, **options))
    for each in running.components:
        _add_component(code, repositories, endpoint, each)
    return endpoint


def _fleet_options(code: StackCode, variant: Answer) -> Options:
    running = code.running.running_variant(variant["VariantName"])
    count = running.get("DesiredInstanceCount", variant.get("InitialInstanceCount", 1))
    managed = variant.get("ManagedInstanceScaling") or {}
    if managed.get("Status") != "ENABLED":
        managed = {}
        code.adoption.differ(
            "DescribeEndpointConfig.ProductionVariants.ManagedInstanceScaling",
            f"enabled with {count} to {count} instances, since the construct always lets SageMaker place "
            "copies",
        )
    bounds = {"MinInstanceCount": count, "MaxInstanceCount": count, **managed}
    found = options_of(bounds, "MinInstanceCount", "MaxInstanceCount", with_zero=True)
    if max(count, 1) != max(bounds["MinInstanceCount"], 1):
        found["initial_instance_count"] = literal(max(count, 1))
    return found


def _add_component(code: StackCode, repositories: Repositories, endpoint: str, component: Answer) -> None:
    name = component["InferenceComponentName"]
    (specification, *others) = specifications_of(component)
    model_name = specification.get("ModelName", "")
    container = code.running.container(model_name)
    if others or not container or not DeclaredContainer.of(name, container).is_triton:
        code.adoption.refuse(
            "inference-component",
            f"inference component {name}: is not carried over, since it has no single model with a Triton "
            "container that can be read; add it by hand in app.py",
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
