"""Each construct that serves models warns if they do not fit into its memory."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Annotations, Match
from cdk_apps import add_repository, make_stack, write_model
from constructs import Construct

import constructs_triton
from constructs_triton import (
    AsyncInferenceConfig,
    InstancePool,
    InstanceType,
    TritonComponentEndpoint,
    TritonEnvironment,
    TritonInferenceComponent,
    TritonVariant,
)
from constructs_triton_core.errors import RepositoryError

SMALL = InstanceType.of("ml.g5.xlarge")
"""One GPU of 22.4 GiB, 16 GiB of main memory."""
LARGE = InstanceType.of("ml.g6e.xlarge")
"""One GPU of 44.7 GiB, 32 GiB of main memory."""
CPU = InstanceType.of("ml.m5.xlarge")
"""No GPU, 16 GiB of main memory."""
_ENSEMBLE = """name: "pipeline"
platform: "ensemble"
max_batch_size: 8
input { name: "x" data_type: TYPE_FP32 dims: 4 }
output { name: "y" data_type: TYPE_FP32 dims: 4 }
ensemble_scheduling {
  step { model_name: "model" model_version: -1
         input_map { key: "x" value: "x" } output_map { key: "y" value: "y" } }
}
"""


def _serving() -> list[type[Construct]]:
    """The public constructs that serve the models of a repository."""
    names = sorted(constructs_triton.__all__)
    found = [getattr(constructs_triton, name) for name in names]
    return [
        each
        for each in found
        if inspect.isclass(each)
        and issubclass(each, Construct)
        and "model_repository" in inspect.signature(each.__init__).parameters
    ]


def _add(stack: cdk.Stack, construct: Any, models: Path, instance_type: InstanceType) -> None:
    """Add a construct that serves ``models``, with the properties that it requires."""
    values: dict[str, Callable[[], Any]] = {
        "model_repository": lambda: add_repository(stack, models),
        "instance_type": lambda: instance_type,
        "model": lambda: "model",
        "ensemble": lambda: "pipeline",
        "min_memory": lambda: cdk.Size.gibibytes(1),
        "number_of_accelerator_devices": lambda: instance_type.gpus or None,
        "endpoint": lambda: TritonComponentEndpoint(
            stack,
            "Shared",
            instance_type=instance_type,
            min_instance_count=1,
            max_instance_count=2,
        ),
    }
    parameters = inspect.signature(construct.__init__).parameters
    required = {name: make() for name, make in values.items() if name in parameters}
    if "model" in required:
        required.pop("ensemble", None)  # the two exclude each other
    construct(stack, "Served", **required)


def _declared(path: Path, *, gpu_mib: int = 0, host_mib: int = 0) -> Path:
    """Write a model that takes so much memory, and an ensemble of it."""
    kind = "kind: KIND_GPU" if gpu_mib else "kind: KIND_CPU"
    write_model(path, "model", group=kind)
    write_model(path, "pipeline", config=_ENSEMBLE)
    declared = f"model = {{ gpu_mib = {gpu_mib}, host_mib = {host_mib} }}"
    (path / "triton-models.toml").write_text(f"[memory]\n{declared}\n")
    return path


def _warnings(stack: cdk.Stack, code: str) -> list[str]:
    """The messages of the warnings that can be acknowledged with a code."""
    text = Match.string_like_regexp(f"constructs-triton:{code}")
    return [str(each.entry.data) for each in Annotations.from_stack(stack).find_warning("*", text)]


@pytest.mark.parametrize("construct", _serving(), ids=lambda each: each.__name__)
def test_gpu_that_is_too_small_is_a_warning(construct: Any, tmp_path: Path) -> None:
    """Each construct that serves models warns with the sum and its parts, on the small GPU only."""
    models = _declared(tmp_path, gpu_mib=30_000)
    stack = make_stack()
    _add(stack, construct, models, SMALL)
    (message,) = _warnings(stack, "target-gpu-memory")
    assert (
        "need at least 29.5 GiB of GPU 0, which has 22.4 GiB: model: declared 29.3 GiB" in message
    )
    stack = make_stack()
    _add(stack, construct, models, LARGE)
    assert _warnings(stack, "target-gpu-memory") == []


@pytest.mark.parametrize("construct", _serving(), ids=lambda each: each.__name__)
def test_host_that_is_too_small_is_a_warning(construct: Any, tmp_path: Path) -> None:
    """Each construct that serves models warns if main memory is too small, on the small type
    only.
    """
    models = _declared(tmp_path, host_mib=20_000)
    stack = make_stack()
    _add(stack, construct, models, CPU)
    (message,) = _warnings(stack, "target-memory")
    assert "need at least 19.6 GiB of the host, which has 16.0 GiB" in message
    stack = make_stack()
    _add(stack, construct, models, InstanceType.of("ml.m5.2xlarge"))
    assert _warnings(stack, "target-memory") == []


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({"async_inference": True}, "Test/Served"),
        ({"instance_pools": [LARGE, SMALL]}, "on ml.g5.xlarge: "),
        ({"variants": [("Old", LARGE), ("New", SMALL)]}, "Test/Served/NewVariant"),
        ({"instance_type": LARGE, "shadow_variant": ("Next", SMALL)}, "Test/Served/NextVariant"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_only_the_small_type_is_named(options: dict[str, Any], where: str, tmp_path: Path) -> None:
    """Of several types and variants, the warning names the one with the small GPU."""
    stack = make_stack()
    given: dict[str, Any] = {"instance_type": SMALL, **options}
    if "async_inference" in options:
        given["async_inference"] = AsyncInferenceConfig(bucket=s3.Bucket(stack, "Results"))
    if "instance_pools" in options:
        given["instance_pools"] = [InstancePool(each) for each in options["instance_pools"]]
        given["instance_type"] = None
    if "variants" in options:
        given["variants"] = [_variant(*each) for each in options["variants"]]
        given["instance_type"] = None
    if "shadow_variant" in options:
        given["shadow_variant"] = _variant(*options["shadow_variant"])
    repository = add_repository(stack, _declared(tmp_path, gpu_mib=30_000))
    constructs_triton.TritonEndpoint(
        stack,
        "Served",
        model_repository=repository,
        model="model",
        **{name: value for name, value in given.items() if value is not None},
    )
    found = Annotations.from_stack(stack).find_warning(
        "*", Match.string_like_regexp("target-gpu-memory")
    )
    (place,) = [f"{each.id.lstrip('/')} {each.entry.data}" for each in found]
    assert where in place


def test_load_limit_leaves_less_of_the_gpu(tmp_path: Path) -> None:
    """``model_load_gpu_limit`` is what models may fill: the warning names it, and raising it is
    enough.
    """
    models = _declared(tmp_path, gpu_mib=16_000)
    for limit, expected in (
        (0.6, "of GPU 0, of which model_load_gpu_limit allows 13.4 GiB"),
        (1, ""),
    ):
        stack = make_stack()
        constructs_triton.TritonEndpoint(
            stack,
            "Served",
            model_repository=add_repository(stack, models),
            model="model",
            instance_type=SMALL,
            environment=TritonEnvironment(model_load_gpu_limit=limit),
        )
        assert expected in "".join(_warnings(stack, "target-gpu-memory"))
        assert bool(_warnings(stack, "target-gpu-memory")) is bool(expected)


def _variant(name: str, instance_type: InstanceType) -> TritonVariant:
    return TritonVariant(variant_name=name, instance_type=instance_type)


def _add_components(stack: cdk.Stack, models: Path, count: int = 1, **options: Any) -> None:
    """Add components of ``model`` with 1 GiB of reserved memory on one CPU instance."""
    endpoint = TritonComponentEndpoint(
        stack, "Shared", instance_type=CPU, min_instance_count=1, max_instance_count=1
    )
    repository = add_repository(stack, models)
    for number in range(count):
        TritonInferenceComponent(
            stack,
            f"Copy{number}",
            endpoint=endpoint,
            model_repository=repository,
            model="model",
            **{"min_memory": cdk.Size.gibibytes(1), **options},
        )


def test_component_may_use_its_maximum_only(tmp_path: Path) -> None:
    """A component whose models take more than ``max_memory`` gets a warning; raising it, as the
    warning says, is enough.
    """
    models = _declared(tmp_path, host_mib=3000)
    stack = make_stack()
    _add_components(stack, models, max_memory=cdk.Size.mebibytes(2048))
    (message,) = _warnings(stack, "target-memory")
    assert "of the host, of which max_memory allows 2.0 GiB" in message
    assert "raise max_memory" in message
    stack = make_stack()
    _add_components(stack, models, max_memory=cdk.Size.mebibytes(3100))
    assert _warnings(stack, "target-memory") == []


@pytest.mark.parametrize(
    ("count", "copies"), [(1, 4), (4, 1)], ids=["copies of one", "several components"]
)
def test_copies_that_reserve_less_than_they_take_are_a_warning(
    count: int, copies: int, tmp_path: Path
) -> None:
    """Copies that fit on an instance by what they reserve, and not by what their models take, get
    a warning; fewer copies do not.
    """
    models = _declared(tmp_path, host_mib=6000)
    stack = make_stack()
    _add_components(stack, models, count, copy_count=copies)
    (message,) = _warnings(stack, "component-memory-exceeds-fleet")
    assert "set min_memory to at least 6045 MiB for Copy0" in message
    stack = make_stack()
    _add_components(stack, models, copy_count=2)
    assert _warnings(stack, "component-memory-exceeds-fleet") == []


def test_acknowledged_warning_is_not_printed(tmp_path: Path) -> None:
    """The warning can be acknowledged by its id, as each warning of the library."""
    stack = make_stack()
    cdk.Annotations.of(stack).acknowledge_warning("constructs-triton:target-gpu-memory")
    _add(stack, constructs_triton.TritonEndpoint, _declared(tmp_path, gpu_mib=30_000), SMALL)
    assert _warnings(stack, "target-gpu-memory") == []


def test_weights_beyond_the_load_limit_are_an_error_with_its_name(tmp_path: Path) -> None:
    """Weights that certainly exceed ``model_load_gpu_limit`` are an error that says to raise it."""
    (tmp_path / "model" / "1").mkdir(parents=True)
    plan = tmp_path / "model" / "1" / "model.plan"
    plan.write_bytes(b"ftrt" + bytes(64))
    with plan.open("r+b") as file:
        file.truncate(9 * 2**30)
    (tmp_path / "model" / "config.pbtxt").write_text('backend: "tensorrt"')
    stack = make_stack()
    with pytest.raises(RepositoryError) as raised:
        constructs_triton.TritonEndpoint(
            stack,
            "Served",
            model_repository=add_repository(stack, tmp_path),
            instance_type=SMALL,
            environment=TritonEnvironment(model_load_gpu_limit=0.3),
        )
    (finding,) = [
        each for each in raised.value.findings if each.code == "target-gpu-weights-memory"
    ]
    assert "8.8 GiB of GPU 0, of which model_load_gpu_limit allows 6.7 GiB" in finding.message
    assert finding.hint.startswith("raise model_load_gpu_limit")


def test_limit_is_not_to_be_raised_where_that_is_not_enough(tmp_path: Path) -> None:
    """Models that exceed the GPU itself need a larger one, whatever the limit."""
    stack = make_stack()
    constructs_triton.TritonEndpoint(
        stack,
        "Served",
        model_repository=add_repository(stack, _declared(tmp_path, gpu_mib=30_000)),
        model="model",
        instance_type=SMALL,
        environment=TritonEnvironment(model_load_gpu_limit=0.9),
    )
    (message,) = _warnings(stack, "target-gpu-memory")
    assert "use an instance type whose GPUs have more memory" in message
    assert "raise model_load_gpu_limit" not in message
