"""An endpoint with its variants as statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from constructs_triton.operations.adopting.endpoint_options import endpoint_options, host_options
from constructs_triton.operations.adopting.models import AdoptedModels, ModelReader, target_of
from constructs_triton.operations.adopting.python_text import Call, Expression, literal
from constructs_triton.operations.adopting.running_endpoint import container_of
from constructs_triton.operations.adopting.scaling_code import add_scaling
from constructs_triton.operations.adopting.stack_code import StackCode, list_of
from constructs_triton.operations.adopting.variant_code import (
    container_options,
    first_instance_type,
    image_version_of,
    model_source,
    variant_options,
)

__all__ = ["Repositories", "Switch", "add_endpoint", "add_output"]

Answer = Mapping[str, Any]
Options = dict[str, Expression]
#: How the app takes the place of the endpoint.
Switch = Literal["take-over", "import", "new-endpoint"]


@dataclass(slots=True)
class Repositories:
    """The model repositories of a stack, one for each SageMaker model.

    Args:
        code: The stack.
        reader: Reads the models.
        count: Number of SageMaker models; the only one has the folder ``models`` for itself.
    """

    code: StackCode
    reader: ModelReader
    count: int
    _found: dict[str, tuple[str, AdoptedModels] | None] = field(default_factory=dict)

    def of(self, model_name: str, variant: Answer) -> tuple[str, AdoptedModels] | None:
        """Return the variable of the repository of a SageMaker model, and its models."""
        if model_name not in self._found:
            self._found[model_name] = self._add(model_name, variant)
        return self._found[model_name]

    def _add(self, model_name: str, variant: Answer) -> tuple[str, AdoptedModels] | None:
        container = container_of(self.code.running.models[model_name])
        target = target_of(container, first_instance_type(variant), image_version_of(container))
        folder = "models" if self.count == 1 else f"models/{model_name}"
        models = self.reader.read(model_name, container, target, folder)
        if models is None:
            return None
        construct_id = self.code.new_id("Models")
        keywords: Options = {"source": model_source(self.code, models)}
        if models.acknowledged:
            check = f"{self.code.ours('RepositoryCheck')}.on"
            keywords["check"] = Call(check, [], {"acknowledge": literal(list(models.acknowledged))})
        call = Call(self.code.ours("TritonModelRepository"), ["self", construct_id], keywords)
        return self.code.add("models", call), models


@dataclass(frozen=True, slots=True)
class _Variant:
    name: str
    answer: Answer
    models: AdoptedModels
    options: Options
    is_shadow: bool


def add_endpoint(code: StackCode, repositories: Repositories, switch: Switch) -> str | None:
    """Add the endpoint and its scaling; return its variable, or ``None`` if that is not possible."""
    running = code.running
    shared = endpoint_options(code)
    variants = [_variant(code, repositories, each, shared) for each in running.variants]
    known = [each for each in variants if each is not None]
    if len(known) != len(variants):
        return None
    first = known[0]
    model = running.models[first.answer["ModelName"]]
    if len({str(_host_of(running.models[each.answer["ModelName"]])) for each in known}) > 1:
        code.adoption.refuse(
            "models-differ",
            "the models of the variants differ in VPC or network isolation; those of the first are used",
        )
    options = _common(known)
    if first.models.model is not None:
        options["ensemble" if first.models.is_ensemble else "model"] = literal(first.models.model)
    if not first.models.is_multi_model and any(each.models.is_multi_model for each in known):
        code.adoption.refuse(
            "mode", "variants with one and with many models are not supported", is_final=True
        )
    ordered: Options = {
        "model_repository": options.pop("model_repository"),
        **{name: options.pop(name) for name in ("model", "ensemble") if name in options},
        **_naming(switch),
        **options,
        **_variants(code, known, options),
        **host_options(code, model),
        **shared,
    }
    construct = "TritonMultiModelEndpoint" if first.models.is_multi_model else "TritonEndpoint"
    construct = "TritonEnsembleEndpoint" if "ensemble" in ordered else construct
    setting = container_of(model).get("MultiModelConfig", {}).get("ModelCacheSetting")
    if setting and first.models.is_multi_model:
        ordered["model_cache_setting"] = literal(setting)
    endpoint = code.add("endpoint", Call(code.ours(construct), ["self", code.new_id("Endpoint")], ordered))
    if switch == "import":
        code.run(Call(f"{endpoint}.cfn_endpoint.override_logical_id", ['"Endpoint"']))
    _add_scaling(code, endpoint, known)
    return endpoint


def _host_of(model: Answer) -> tuple[Any, Any]:
    return model.get("VpcConfig"), model.get("EnableNetworkIsolation", False)


def _naming(switch: Switch) -> Options:
    named: Options = {"endpoint_name": "ENDPOINT_NAME"}
    return {**named, "adopt_existing": "True"} if switch == "take-over" else named


def _variant(code: StackCode, repositories: Repositories, answer: Answer, shared: Options) -> _Variant | None:
    name = answer["VariantName"]
    container = container_of(code.running.models.get(answer["ModelName"], {}))
    if not container:
        code.adoption.refuse(
            "deleted-model",
            f"variant {name}: its model {answer['ModelName']} cannot be read, so only its image is known; "
            "create a model with the same data, and an endpoint configuration with it",
            is_final=True,
        )
        return None
    found = repositories.of(answer["ModelName"], answer)
    if found is None:
        return None
    variable, models = found
    is_asynchronous = "async_inference" in shared
    options: Options = {"model_repository": variable, **_instances(code, repositories, answer)}
    options |= variant_options(code, answer, is_asynchronous=is_asynchronous, models=models)
    options |= container_options(code, answer["ModelName"], container, answer, models)
    shadows = code.running.config.get("ShadowProductionVariants", [])
    return _Variant(name, answer, models, options, is_shadow=any(each is answer for each in shadows))


def _instances(code: StackCode, repositories: Repositories, variant: Answer) -> Options:
    of = f"{code.ours('InstanceType')}.of"
    pools = sorted(variant.get("InstancePools", []), key=lambda each: each.get("Priority", 0))
    if not pools:
        return {"instance_type": Call(of, [literal(variant["InstanceType"])])}
    written: list[Expression] = []
    for each in pools:
        keywords: Options = {}
        found = None
        if each.get("ModelNameOverride"):
            found = repositories.of(each["ModelNameOverride"], {"InstanceType": each["InstanceType"]})
        if found is not None:
            keywords["model_repository"] = found[0]
            if found[1].model is not None:
                keywords["model"] = literal(found[1].model)
        written.append(Call(code.ours("InstancePool"), [Call(of, [literal(each["InstanceType"])])], keywords))
    return {"instance_pools": list_of(written)}


#: What a variant takes from its endpoint unless it sets its own, and what the endpoint must have.
_FROM_FIRST = ("model_repository", "instance_type")


def _common(variants: Sequence[_Variant]) -> Options:
    """Return the options that all variants share, and those of the first that the endpoint must have."""
    first = variants[0].options
    return {
        name: value
        for name, value in first.items()
        if name in _FROM_FIRST or all(each.options.get(name) == value for each in variants)
    }


def _variants(code: StackCode, variants: Sequence[_Variant], common: Options) -> Options:
    if len(variants) == 1:
        name = variants[0].name
        return {} if name == "AllTraffic" else {"variant_name": literal(name)}
    calls = [(each.is_shadow, _variant_call(code, each, variants[0], common)) for each in variants]
    production: list[Expression] = [call for is_shadow, call in calls if not is_shadow]
    shadows = [call for is_shadow, call in calls if is_shadow]
    found: Options = {"variants": list_of(production)}
    if shadows:
        found["shadow_variant"] = shadows[0]
    return found


def _variant_call(code: StackCode, variant: _Variant, first: _Variant, common: Options) -> Call:
    own: Options = {"variant_name": literal(variant.name)}
    if variant.models.model != first.models.model and variant.models.model is not None:
        own["model"] = literal(variant.models.model)
    repository = {"model_repository": first.options["model_repository"]}
    for name, value in variant.options.items():
        if {**common, **repository}.get(name) != value:
            own[name] = value
    return Call(code.ours("TritonVariant"), [], own)


def _add_scaling(code: StackCode, endpoint: str, variants: Sequence[_Variant]) -> None:
    for each in variants:
        scaled = endpoint if len(variants) == 1 else f"{endpoint}.variant({literal(each.name)})"
        resource_id = f"endpoint/{code.running.name}/variant/{each.name}"
        add_scaling(code, scaled, resource_id, instance_type=first_instance_type(each.answer) or "")


def add_output(code: StackCode, endpoint: str) -> None:
    """Add the tags of the endpoint, and an output with its name."""
    running = code.running
    tags = running.tags.get(running.endpoint["EndpointArn"], {})
    for name, value in sorted(tags.items()):
        code.run(Call(f"cdk.Tags.of({endpoint}).add", [literal(name), code.value(name, value, "tag")]))
    for arn, others in running.tags.items():
        if others != tags and ":inference-component/" not in arn:
            kind, _, resource = arn.split(":")[5].partition("/")
            code.adoption.differ(f"ListTags[{kind}]", f"{resource} has the tags of the endpoint")
    output = {"value": f"{endpoint}.endpoint_name"}
    code.run(Call("cdk.CfnOutput", ["self", '"EndpointName"'], output))
