"""Several variants of one endpoint, and properties derived from the size of their archives."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_s3 as s3
from cdk_apps import (
    CPU,
    GPU,
    add_endpoint,
    add_ensemble,
    add_many,
    add_repository,
    make_app,
    make_stack,
    only,
    only_variant,
    primary_container,
    resources,
    statement_list,
    statements,
    synthesize,
    warnings,
    write_model,
)

from constructs_triton import CoreDump, InstanceType, TritonImage, TritonVariant
from constructs_triton.cdk.endpoint.sizing import Sizing
from constructs_triton.cdk.options.variant_options import ContainerOptions
from constructs_triton.cdk.repository.loaded_models import ModelLocation
from constructs_triton_core.declared_values import with_defaults
from constructs_triton_core.errors import InvalidValueError, RepositoryError
from constructs_triton_core.tokens import is_token

GB = 10**9


make_endpoint = partial(add_endpoint, model="scale")


def variants(template: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The production variants of the only endpoint configuration, by their names."""
    found = only(template, "AWS::SageMaker::EndpointConfig")["ProductionVariants"]
    return {variant["VariantName"]: variant for variant in found}


def test_variants_inherit_from_the_endpoint(stack: cdk.Stack, path: Path) -> None:
    """Each variant may set its own instance type, count, weight and model; zero is a weight."""
    make_endpoint(
        stack,
        path,
        initial_instance_count=3,
        variants=[
            TritonVariant(variant_name="blue", initial_variant_weight=9),
            TritonVariant(
                variant_name="green",
                model="shift",
                instance_type=CPU,
                initial_instance_count=1,
                initial_variant_weight=0,
                environment={"SAGEMAKER_TRITON_THREAD_COUNT": "8"},
            ),
        ],
    )

    template = synthesize(stack)

    blue, green = variants(template).values()
    assert blue["InstanceType"] == "ml.g5.xlarge"
    assert blue["InitialInstanceCount"] == 3
    assert blue["InitialVariantWeight"] == 9
    assert green["InstanceType"] == "ml.c5.xlarge"
    assert green["InitialInstanceCount"] == 1
    assert green["InitialVariantWeight"] == 0
    assert "InferenceAmiVersion" not in green

    model = green["ModelName"]["Fn::GetAtt"][0]
    properties = resources(template, "AWS::SageMaker::Model")[model]["Properties"]
    container = properties["PrimaryContainer"]
    assert container["Environment"]["SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"] == "shift"
    assert container["Environment"]["SAGEMAKER_TRITON_THREAD_COUNT"] == "8"
    assert container["Image"].endswith("-cpu")


OWN = [
    TritonVariant(variant_name="blue", instance_type=GPU),
    TritonVariant(variant_name="green", instance_type=CPU),
]


def test_variants_with_own_types_need_none_of_the_endpoint(path: Path) -> None:
    """The endpoint's own instance type then changes nothing: both templates are equal."""
    without = make_stack()
    make_endpoint(without, path, instance_type=None, variants=OWN)
    with_one = make_stack()
    make_endpoint(with_one, path, instance_type=CPU, variants=OWN)

    template = synthesize(without)

    found = variants(template)
    assert found["blue"]["InstanceType"] == "ml.g5.xlarge"
    assert found["green"]["InstanceType"] == "ml.c5.xlarge"
    assert template == synthesize(with_one)


def test_role_reads_the_archives_of_all_variants(stack: cdk.Stack, tmp_path: Path) -> None:
    """One statement names both archives; IAM rejects a policy with a repeated Sid."""
    for release in ("old", "new"):
        write_model(tmp_path / release, "model")
    (tmp_path / "new" / "model" / "1" / "labels.txt").write_text("a newer release")
    old = TritonVariant(variant_name="old")
    new = TritonVariant(
        variant_name="new", model_repository=add_repository(stack, tmp_path / "new", "New")
    )
    add_endpoint(stack, tmp_path / "old", variants=[old, new])

    template = synthesize(stack)

    assert len(statements(template)["LoadModel"]["Resource"]) == 2
    sids = [statement["Sid"] for statement in statement_list(template)]
    assert len(sids) == len(set(sids))


def test_two_multi_model_repositories_keep_their_own_conditions(
    stack: cdk.Stack, tmp_path: Path
) -> None:
    """Statements with different conditions stay separate and have different Sids."""
    bucket = s3.Bucket(stack, "Bucket")
    write_model(tmp_path / "one", "one")
    one = add_repository(stack, tmp_path / "one", "one", bucket=bucket, prefix="one/")
    write_model(tmp_path / "two", "two")
    two = add_repository(stack, tmp_path / "two", "two", bucket=bucket, prefix="two/")
    first = TritonVariant(variant_name="one")
    second = TritonVariant(variant_name="two", model_repository=two)
    add_many(stack, one, variants=[first, second])

    found = statements(synthesize(stack))

    assert found["ListModels"]["Condition"]["StringLike"]["s3:prefix"] == ["one/*"]
    assert found["ListModels2"]["Condition"]["StringLike"]["s3:prefix"] == ["two/*"]
    assert "[ack: constructs-triton:multi-model-variants-undocumented]" in str(warnings(stack))


def test_images_built_for_two_variants_do_not_collide(
    stack: cdk.Stack, path: Path, tmp_path: Path
) -> None:
    """The resources of each variant have their own scope, so both may build an image."""
    (tmp_path / "image").mkdir()
    (tmp_path / "image" / "Dockerfile").write_text("FROM scratch\n")
    image = TritonImage.from_asset(str(tmp_path / "image"), triton_version="26.05")
    names = ("Resource", "Role")
    make_endpoint(
        stack, path, image=image, variants=[TritonVariant(variant_name=name) for name in names]
    )
    assert len(variants(synthesize(stack))) == 2


def test_each_variant_has_metrics_scaling_and_model(stack: cdk.Stack, path: Path) -> None:
    """Each variant has the metrics, scaling and model that an endpoint has for its only variant."""
    endpoint = make_endpoint(stack, path, variants=[BLUE, GREEN])
    green = endpoint.variant("green")
    green.auto_scale_instance_count(min_capacity=1, max_capacity=2)
    assert stack.resolve(green.metric_invocations().dimensions)["VariantName"] == "green"
    assert green.cfn_model is not endpoint.variant("blue").cfn_model
    for ask in (lambda: endpoint.metric("Invocations"), lambda: endpoint.cfn_model):
        with pytest.raises(
            InvalidValueError, match=r'has 2 variants; .* endpoint\.variant\("blue"\)$'
        ):
            ask()
    with pytest.raises(
        InvalidValueError, match='no such variant, got "red"; use one of "blue", "green"'
    ):
        endpoint.variant("red")


def test_shadow_variant_is_not_a_production_variant(stack: cdk.Stack, path: Path) -> None:
    """Its weight is the share of requests that are copied to it."""
    image = TritonImage.dlc("25.09")
    shadowing = TritonVariant(variant_name="next", image=image, initial_variant_weight=0.5)
    endpoint = make_endpoint(stack, path, shadow_variant=shadowing)
    template = synthesize(stack)
    (shadow,) = only(template, "AWS::SageMaker::EndpointConfig")["ShadowProductionVariants"]
    assert (shadow["VariantName"], shadow["InitialVariantWeight"]) == ("next", 0.5)
    assert list(variants(template)) == ["AllTraffic"]
    assert [variant.variant_name for variant in endpoint.variants] == ["AllTraffic"]
    assert endpoint.shadow_variant is not None
    assert endpoint.shadow_variant.metric_invocations().metric_name == "Invocations"


BLUE = TritonVariant(variant_name="blue")
GREEN = TritonVariant(variant_name="green")
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("same name", {"variants": [BLUE, BLUE]}, 'got "blue" twice'),
    ("none", {"variants": []}, "variants: must have 1 to 10"),
    (
        "eleven",
        {"variants": [TritonVariant(variant_name=f"v{n}") for n in range(11)]},
        "got 11; remove 1",
    ),
    (
        "two names",
        {"variants": [BLUE], "variant_name": "green"},
        "set variant_name on each TritonVariant",
    ),
    ("two and shadow", {"variants": [BLUE, GREEN], "shadow_variant": BLUE}, "twice"),
    (
        "two beside shadow",
        {"variants": [BLUE, GREEN], "shadow_variant": TritonVariant(variant_name="s")},
        "needs exactly one production variant, got 2",
    ),
    (
        "own machine",
        {
            "variants": [
                TritonVariant(variant_name="blue", instance_type=InstanceType.of("ml.c7g.xlarge"))
            ]
        },
        'variant "blue" .*x86_64 only',
    ),
    (
        "no machine",
        {"instance_type": None},
        "instance_type: is required; write instance_type=InstanceType",
    ),
    (
        "no machine of one",
        {"instance_type": None, "variants": [OWN[0], GREEN]},
        r'^variant "green" instance_type: is required, .*instance_type=InstanceType\.of\(',
    ),
    (
        "no machine of shadow",
        {"instance_type": None, "variants": OWN[:1], "shadow_variant": GREEN},
        '^variant "green" instance_type: is required',
    ),
    (
        "serverless",
        {"serverless_config": {"max_concurrency": 5}},
        "because serverless endpoints have no GPU",
    ),
    ("routing", {"routing_strategy": "KV_AWARE"}, "containers for language models"),
    ("routing word", {"routing_strategy": "RANDON"}, 'did you mean "RANDOM"'),
    (
        "provision",
        {"variant_instance_provision_timeout": cdk.Duration.minutes(4)},
        "from 300 to 3600",
    ),
]


@pytest.mark.parametrize(
    ("props", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_refused_variants_leave_nothing_behind(
    stack: cdk.Stack, path: Path, props: dict[str, Any], message: str
) -> None:
    """The error names the variant and the property, and no endpoint is added to the tree."""
    with pytest.raises(InvalidValueError, match=message):
        make_endpoint(stack, path, **props)
    assert stack.node.try_find_child("Endpoint") is None


REFUSED_BY_VARIANT: list[tuple[dict[str, Any], type[Exception], str]] = [
    (
        {"initial_instance_count": 0},
        InvalidValueError,
        r'^variant "blue" initial_instance_count: .* at least 1',
    ),
    (
        {"instance_type": "ml.g5.xlarge"},
        InvalidValueError,
        r'^variant "blue" instance_type: .*InstanceType',
    ),
    ({"image": "26.05"}, InvalidValueError, r'^variant "blue" image: .*write TritonImage\.dlc'),
    (
        {"routing_strategy": "RANDON"},
        InvalidValueError,
        r'^variant "blue" routing_strategy: .*"RANDOM"\?',
    ),
    ({"initial_weight": 1}, TypeError, 'did you mean "initial_variant_weight"'),
    ({"variant_name": "no spaces"}, InvalidValueError, "^variant_name: must match"),
]


@pytest.mark.parametrize(
    ("own", "error", "message"), REFUSED_BY_VARIANT, ids=lambda value: str(value)[:20]
)
def test_variant_checks_its_properties_where_it_is_created(
    own: dict[str, Any], error: type[Exception], message: str
) -> None:
    """A TritonVariant checks its properties; the error names the variant and the property."""
    with pytest.raises(error, match=message):
        TritonVariant(**{"variant_name": "blue", **own})


def test_each_variant_is_checked_with_its_own_instance_type(
    stack: cdk.Stack, tmp_path: Path
) -> None:
    """A model that needs a GPU raises an error for the one variant without a GPU."""
    write_model(tmp_path, "scale", group="kind: KIND_GPU")
    with pytest.raises(RepositoryError, match="KIND_GPU"):
        make_endpoint(stack, tmp_path, variants=[BLUE, OWN[1]])
    assert stack.node.try_find_child("Endpoint") is None


def test_multi_model_variants_have_no_shadow_and_no_model(stack: cdk.Stack, path: Path) -> None:
    """A multi-model endpoint has no shadow variant, and its variants no ``model``."""
    with pytest.raises(
        InvalidValueError, match="shadow_variant: not supported on multi-model endpoints"
    ):
        add_many(stack, path, shadow_variant=BLUE)
    with pytest.raises(InvalidValueError, match="serves all models of its repository"):
        add_many(stack, path, "Other", variants=[TritonVariant(variant_name="blue", model="scale")])


def test_routing_of_single_model_endpoints(path: Path) -> None:
    """Single-model endpoints route by outstanding requests;
    multi-model endpoints set no strategy.
    """

    def routing(add: Any, **props: Any) -> Any:
        stack = make_stack()
        add(stack, path, **props)
        return only_variant(synthesize(stack)).get("RoutingConfig")

    assert routing(make_endpoint) == {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"}
    assert routing(add_many) is None
    assert routing(make_endpoint, routing_strategy="RANDOM") == {"RoutingStrategy": "RANDOM"}


def test_access_core_dumps_and_provision_timeout(stack: cdk.Stack, path: Path) -> None:
    """They are in the variant, and the role may write core dumps only below their prefix."""
    bucket = s3.Bucket(stack, "Dumps")
    make_endpoint(
        stack,
        path,
        enable_ssm_access=True,
        core_dump=CoreDump(bucket=bucket),
        variant_instance_provision_timeout=cdk.Duration.minutes(20),
    )
    template = synthesize(stack)
    rendered = only_variant(template)
    assert rendered["EnableSSMAccess"] is True
    assert rendered["VariantInstanceProvisionTimeoutInSeconds"] == 1200
    assert "core-dumps" in str(rendered["CoreDumpConfig"]["DestinationS3Uri"])
    assert "/core-dumps/*" in str(statements(template)["WriteCoreDump"]["Resource"])


def test_cache_setting_of_a_multi_model_endpoint(stack: cdk.Stack, path: Path) -> None:
    """The setting is in the container, and a misspelled value raises an error."""
    add_many(stack, path, model_cache_setting="Disabled")
    assert primary_container(synthesize(stack))["MultiModelConfig"] == {
        "ModelCacheSetting": "Disabled"
    }
    with pytest.raises(InvalidValueError, match=r'got "disable"; did you mean "Disabled"\?'):
        add_many(make_stack(), path, model_cache_setting="disable")


SIZES: list[tuple[int, int, tuple[float | None, float, float]]] = [
    (1, 1, (None, 600, 600)),
    (3 * GB, 6 * GB, (None, 660, 720)),
    (20 * GB, 20 * GB, (41, 960, 960)),
    (500 * GB, 500 * GB, (512, 3600, 3600)),
]


TIMEOUTS = with_defaults(ContainerOptions(), ContainerOptions)


@pytest.mark.parametrize(("packed", "unpacked", "expected"), SIZES)
def test_volume_and_timeouts_follow_from_the_archive(
    packed: int, unpacked: int, expected: tuple[float | None, float, float]
) -> None:
    """The timeouts and the volume grow with the archive."""
    location = ModelLocation("s3://b/k.tar.gz", (), size_bytes=packed, unpacked_size_bytes=unpacked)
    volume, download, startup = expected

    sizing = Sizing.of(location, CPU, TIMEOUTS)

    assert sizing.volume_size_gib == volume
    assert sizing.model_data_download_timeout == download
    assert sizing.container_startup_health_check_timeout == startup
    codes = [finding.code for finding in sizing.findings]
    assert codes == (["volume-too-small"] if packed > 100 * GB else [])


def test_sizing_of_several_types_fits_all_of_them() -> None:
    """The longest timeouts; a volume size that only some types support is a warning,
    and is left out.
    """
    big = ModelLocation("s3://b/big.tar.gz", (), size_bytes=40 * GB, unpacked_size_bytes=40 * GB)
    small = ModelLocation("s3://b/small.tar.gz", (), size_bytes=GB, unpacked_size_bytes=GB)
    on_disk = Sizing.of(big, GPU, TIMEOUTS)
    on_volume = Sizing.of(big, CPU, TIMEOUTS)

    mixed = Sizing.of_pools([on_volume, on_disk])
    assert mixed.volume_size_gib is None
    (finding,) = mixed.findings
    assert finding.code == "instance-pools-volume-size"
    assert "82 GiB" in finding.message

    several = Sizing.of_pools([Sizing.of(small, GPU, TIMEOUTS), on_disk])
    assert several.model_data_download_timeout == on_disk.model_data_download_timeout

    unknown = Sizing.of(ModelLocation("s3://b/models/", ()), GPU, TIMEOUTS)
    assert Sizing.of_pools([on_disk, unknown]).model_data_download_timeout is None

    volume = cdk.Size.gibibytes(cdk.Token.as_number({"Ref": "Volume"}))
    with_token = Sizing.of(big, CPU, TIMEOUTS, volume)
    equal = Sizing.of_pools([with_token, Sizing.of(big, CPU, TIMEOUTS, volume)])
    assert is_token(equal.volume_size_gib)
    assert equal.findings == ()

    wait = cdk.Duration.seconds(cdk.Token.as_number({"Ref": "Wait"}))
    timeouts: ContainerOptions = {**TIMEOUTS, "model_data_download_timeout": wait}
    waiting = Sizing.of_pools([Sizing.of(big, GPU, timeouts), on_disk])
    assert is_token(waiting.model_data_download_timeout)


def test_given_volume_and_timeouts_are_kept() -> None:
    """Nothing is derived for a prefix or local NVMe storage, and given values are kept."""
    given: ContainerOptions = {
        "model_data_download_timeout": cdk.Duration.seconds(61),
        "container_startup_health_check_timeout": cdk.Duration.seconds(62),
    }
    big = ModelLocation("s3://b/k.tar.gz", (), size_bytes=100 * GB, unpacked_size_bytes=100 * GB)
    assert Sizing.of(big, CPU, given, cdk.Size.gibibytes(100)) == Sizing(100, 61, 62)
    assert Sizing.of(big, GPU, TIMEOUTS).volume_size_gib is None
    assert Sizing.of(ModelLocation("s3://b/models/", ()), GPU, TIMEOUTS) == Sizing(None, None, None)


def test_names_of_variants_may_be_tokens(path: Path) -> None:
    """The construct IDs then contain the positions in the list."""
    stack = make_stack(None)
    names = [cdk.CfnParameter(stack, name).value_as_string for name in ("First", "Second")]
    endpoint = make_endpoint(
        stack, path, variants=[TritonVariant(variant_name=name) for name in names]
    )
    for variant in endpoint.variants:
        variant.auto_scale_instance_count(min_capacity=1, max_capacity=2)

    template = synthesize(stack)

    first, second = only(template, "AWS::SageMaker::EndpointConfig")["ProductionVariants"]
    assert first["VariantName"] == {"Ref": "First"}
    assert second["VariantName"] == {"Ref": "Second"}
    assert len(resources(template, "AWS::ApplicationAutoScaling::ScalableTarget")) == 2


def test_everything_twice_in_one_stack_and_in_a_stage(path: Path) -> None:
    """Two endpoints of one repository in a stack, and again in a stage, have no equal names."""
    app = make_app()
    stage = cdk.Stage(app, "Stage")
    for scope in (app, stage):
        stack = cdk.Stack(scope, "Test")
        repository = add_repository(stack, path)
        for name in ("A", "B"):
            add_ensemble(stack, repository, name, variants=[BLUE, GREEN])
    assembly = app.synth()
    nested = assembly.get_nested_assembly("assembly-Stage")
    for found in (*assembly.stacks, *nested.stacks):
        assert len(resources(found.template, "AWS::SageMaker::Model")) == 4
