"""An endpoint with inference components as statements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from constructs_triton.cloud_assembly.endpoints import DeclaredContainer
from constructs_triton.facts.inference_ami import default_inference_ami
from constructs_triton.facts.instance_types import InstanceType
from constructs_triton.operations.adopting.endpoint_code import Repositories, Switch
from constructs_triton.operations.adopting.endpoint_options import host_options
from constructs_triton.operations.adopting.models import AdoptedModels
from constructs_triton.operations.adopting.python_text import Call, Expression, literal
from constructs_triton.operations.adopting.running_endpoint import container_of, specifications_of
from constructs_triton.operations.adopting.scaling_code import add_scaling
from constructs_triton.operations.adopting.stack_code import StackCode, list_of
from constructs_triton.operations.adopting.variant_code import (
    container_options,
    duration,
    first_instance_type,
    image_version_of,
)

__all__ = ["add_component_endpoint"]

Answer = Mapping[str, Any]
Options = dict[str, Expression]

_SPECIFICATION = frozenset(
    [
        "ModelName",
        "Container",
        "ComputeResourceRequirements",
        "StartupParameters",
        "DataCacheConfig",
        "SchedulingConfig",
    ]
)


def add_component_endpoint(code: StackCode, repositories: Repositories, switch: Switch) -> str | None:
    """Add the endpoint, its components and their scaling; return the variable of the endpoint."""
    running = code.running
    (variant, *others) = running.config["ProductionVariants"]
    if others:
        code.adoption.refuse("variants", "components on several variants are not supported", is_final=True)
        return None
    models = [each for each in running.models.values() if each]
    options = _instances(code, variant)
    if variant.get("VolumeSizeInGB"):
        options["volume_size"] = Call("cdk.Size.gibibytes", [str(variant["VolumeSizeInGB"])])
    options |= _ami(code, variant)
    options |= _routing(variant)
    host = {**(models[0] if models else {}), **{k: v for k, v in running.config.items() if k == "VpcConfig"}}
    if running.config.get("EnableNetworkIsolation"):
        host["EnableNetworkIsolation"] = True
    options |= host_options(code, host, of_config=True)
    call = Call(code.ours("TritonComponentEndpoint"), ["self", code.new_id("Endpoint")], options)
    endpoint = code.add("endpoint", call)
    if switch == "import":
        code.run(Call(f"{endpoint}.cfn_endpoint.override_logical_id", ['"Endpoint"']))
    if switch == "take-over":
        code.adoption.refuse(
            "take-over-components",
            "an endpoint with components cannot be taken over; use --switch import or --switch new-endpoint",
            is_final=True,
        )
    for each in running.components:
        _add_component(code, repositories, endpoint, each)
    return endpoint


def _instances(code: StackCode, variant: Answer) -> Options:
    of = f"{code.ours('InstanceType')}.of"
    found: Options = {"endpoint_name": "ENDPOINT_NAME"}
    if variant["VariantName"] != "AllTraffic":
        found["variant_name"] = literal(variant["VariantName"])
    pools = sorted(variant.get("InstancePools", []), key=lambda each: each.get("Priority", 0))
    if pools:
        types = [Call(of, [literal(each["InstanceType"])]) for each in pools]
        found["instance_pools"] = list_of([Call(code.ours("InstancePool"), [each]) for each in types])
    else:
        found["instance_type"] = Call(of, [literal(variant["InstanceType"])])
    count = code.running.running_variant(variant["VariantName"]).get(
        "DesiredInstanceCount", variant.get("InitialInstanceCount", 1)
    )
    managed = variant.get("ManagedInstanceScaling") or {}
    is_managed = managed.get("Status") == "ENABLED"
    if not is_managed:
        code.adoption.differ(
            "DescribeEndpointConfig.ProductionVariants.ManagedInstanceScaling",
            f"enabled with {count} to {count} instances, since the construct always lets SageMaker place "
            "copies",
        )
    found["min_instance_count"] = str(managed.get("MinInstanceCount", count) if is_managed else count)
    found["max_instance_count"] = str(managed.get("MaxInstanceCount", count) if is_managed else count)
    if max(count, 1) != max(int(str(found["min_instance_count"])), 1):
        found["initial_instance_count"] = str(max(count, 1))
    return found


def _ami(code: StackCode, variant: Answer) -> Options:
    """Leave the AMI out where the construct would choose the same for the images of all components."""
    given, type_name = variant.get("InferenceAmiVersion"), first_instance_type(variant)
    known = InstanceType.of(str(type_name))
    models = code.running.models.values()
    derived = {default_inference_ami(image_version_of(container_of(each)), known).version for each in models}
    return {} if derived <= {given} else {"inference_ami_version": literal(given)}


def _routing(variant: Answer) -> Options:
    strategy = variant.get("RoutingConfig", {}).get("RoutingStrategy", "RANDOM")
    return {} if strategy == "LEAST_OUTSTANDING_REQUESTS" else {"routing_strategy": literal(strategy)}


def _add_component(code: StackCode, repositories: Repositories, endpoint: str, component: Answer) -> None:
    name = component["InferenceComponentName"]
    (specification, *others) = specifications_of(component)
    model_name = specification.get("ModelName")
    container = container_of(code.running.models.get(model_name, {})) if model_name else {}
    if others or not container or not DeclaredContainer.of(name, container).is_triton:
        code.adoption.refuse(
            "inference-component",
            f"inference component {name}: is not carried over, since it has no single model with a Triton "
            "container that can be read; add it by hand in app.py",
        )
        return
    (variant,) = code.running.config["ProductionVariants"]
    found = repositories.of(str(model_name), variant)
    if found is None:
        return
    options = _options(code, component, specification, found, endpoint)
    options |= {
        key: value
        for key, value in container_options(code, str(model_name), container, variant, found[1]).items()
        if key != "inference_ami_version"
    }
    call = Call(code.ours("TritonInferenceComponent"), ["self", code.new_id(name)], options)
    variable = code.add("component", call)
    add_scaling(code, variable, f"inference-component/{name}", instance_type=None)


def _options(
    code: StackCode, component: Answer, specification: Answer, found: tuple[str, AdoptedModels], endpoint: str
) -> Options:
    variable, models = found
    name = component["InferenceComponentName"]
    needs = specification.get("ComputeResourceRequirements", {})
    startup = specification.get("StartupParameters", {})
    options: Options = {"endpoint": endpoint, "model_repository": variable}
    if models.model is not None:
        options["ensemble" if models.is_ensemble else "model"] = literal(models.model)
    options["inference_component_name"] = literal(name)
    count = component.get("RuntimeConfig", {}).get("DesiredCopyCount", 1)
    if count > 1:
        options["copy_count"] = str(count)
    options["min_memory"] = Call("cdk.Size.mebibytes", [str(needs["MinMemoryRequiredInMb"])])
    if needs.get("MaxMemoryRequiredInMb"):
        options["max_memory"] = Call("cdk.Size.mebibytes", [str(needs["MaxMemoryRequiredInMb"])])
    for keyword, member in (
        ("number_of_accelerator_devices", "NumberOfAcceleratorDevicesRequired"),
        ("number_of_cpu_cores", "NumberOfCpuCoresRequired"),
    ):
        if needs.get(member):
            options[keyword] = f"{needs[member]:g}"
    for keyword, member in (
        ("model_data_download_timeout", "ModelDataDownloadTimeoutInSeconds"),
        ("container_startup_health_check_timeout", "ContainerStartupHealthCheckTimeoutInSeconds"),
    ):
        if startup.get(member):
            options[keyword] = duration(startup[member])
        elif models.is_local:
            code.adoption.differ(
                f"DescribeInferenceComponent[{name}].Specification.StartupParameters.{member}",
                "set, derived from the size of the models",
            )
    return options | _placement(code, name, specification)


def _placement(code: StackCode, name: str, specification: Answer) -> Options:
    code.adoption.refuse_rest(f"inference component {name}", specification, _SPECIFICATION)
    options: Options = {}
    caching = (specification.get("DataCacheConfig") or {}).get("EnableCaching")
    if caching is not None:
        options["enable_caching"] = str(bool(caching))
    scheduling = specification.get("SchedulingConfig") or {}
    if scheduling.get("PlacementStrategy"):
        options["placement_strategy"] = literal(scheduling["PlacementStrategy"])
        imbalance = (scheduling.get("AvailabilityZoneBalance") or {}).get("MaxImbalance", 0)
        if imbalance:
            options["max_zone_imbalance"] = str(imbalance)
    return options
