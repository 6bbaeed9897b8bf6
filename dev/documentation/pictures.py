"""Draws the pictures of the pages, from the code where they show code."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from aws_cdk.assertions import Template

from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonEnsembleEndpoint,
    TritonModelRepository,
)
from constructs_triton_tools.planning import Fleet, Traffic, simulate
from constructs_triton_tools.planning.scaling import Scaling, TargetTracking
from constructs_triton_tools.planning.simulation_result import SimulatedMinute
from documentation.picture import Line, Picture

PROJECT = Path(__file__).parents[2]
WIDTH = 480


def road() -> str:
    """Draw the road of a model, from its file to an answer."""
    picture = Picture(WIDTH, "From a model file to an endpoint in AWS or on your machine")
    steps = (
        ("Model file", "model.onnx, model.pt, model.plan, ...", "constructs-triton model new"),
        (
            "Model repository",
            "one folder per model: config.pbtxt, versions",
            "checks: file, line and fix",
        ),
        ("Archives", "reproducible .tar.gz, named by their content", "cdk synth"),
        ("cdk.out", "the template that is deployed", ""),
    )
    y = 4.0
    for title, line, label in steps:
        bottom = picture.box(90, y, 300, title, line)
        if label:
            picture.arrow((240, bottom), (240, bottom + 34), label)
        y = bottom + 34
    _two_ends(picture, y)
    return picture.svg()


def _two_ends(picture: Picture, y: float) -> None:
    picture.arrow((170, y - 34), (120, y + 14))
    picture.arrow((310, y - 34), (360, y + 14))
    picture.label(20, y - 2, "cdk deploy")
    picture.label(460, y - 2, "local up", anchor="end")
    picture.box(
        10,
        y + 14,
        220,
        "Endpoint in AWS",
        "SageMaker runs Triton",
        "scaling, alarms, grants",
        fill="aws",
    )
    here = ("Endpoint on your machine", "Triton from the wheel,", "or the image")
    bottom = picture.box(250, y + 14, 220, *here, fill="side")
    picture.arrow((150, bottom + 40), (120, bottom))
    picture.arrow((330, bottom + 40), (360, bottom))
    picture.box(
        90, bottom + 40, 300, "TritonClient", "NumPy arrays, the same call to either", fill="good"
    )


def layers() -> str:
    """Draw the packages as floors, each with its question and its layers."""
    picture = Picture(720, "The packages: each imports only from packages below it")
    layers_of = _layers()
    y = 4.0
    for name, question, floors in _packages():
        note = question if floors == "none" else f"{question} Imports from {floors}."
        fill = "main" if name == "constructs_triton" else "side"
        shown = [each for each in layers_of[name] if each[0] != "_"]
        y = picture.band(y, name, note, shown, fill=fill) + 8
    return picture.svg()


def update() -> str:
    """Draw the steps of an update, in the order in which CloudFormation takes them."""
    picture = Picture(WIDTH, "The steps of an update")
    steps = (
        ("1. Archives", "uploaded or copied; a changed model has a new name", "main"),
        ("2. New permissions", "a new managed policy on the role", "main"),
        ("3. New model and endpoint configuration", "created beside the old ones", "main"),
        ("4. New instances", "SageMaker downloads the models and starts Triton", "aws"),
        ("5. Traffic moves", "all at once, canary, linear or in batches", "aws"),
        ("6. Checks", "alarms, update check, recorded requests", "good"),
        ("7. Cleanup", "old instances, configuration, model and policy", "main"),
    )
    y = 4.0
    for title, line, fill in steps:
        bottom = picture.box(60, y, 360, title, line, fill=fill)
        if title != steps[-1][0]:
            picture.arrow((240, bottom), (240, bottom + 22))
        y = bottom + 22
    note = "an alarm or a failure in 4 to 6: back to the old configuration"
    picture.label(240, y + 2, note, anchor="middle")
    return picture.svg()


def dashboard() -> str:
    """Draw the widgets of ``add_dashboard`` in their places, with the values of a simulation."""
    picture = Picture(
        720, "The dashboard of an endpoint that scales, with the values of a simulation"
    )
    minutes = _simulated_minutes()
    for widget in _widgets():
        properties: Mapping[str, Any] = widget["properties"]
        if "title" in properties:
            x, y = 4 + widget["x"] * 29.6, (widget["y"] - 1) * 29 + 4
            place = (x, y, widget["width"] * 29.6 - 8, widget["height"] * 29 - 8)
            found = properties.get("annotations", {}).get("horizontal", ())
            marks = [(each["label"], each["value"]) for each in found]
            highest = properties["yAxis"]["left"].get(
                "max", max((value for _, value in marks), default=0)
            )
            picture.chart(
                place, properties["title"], _lines(properties["metrics"], minutes, highest), marks
            )
    note = "A day of a simulation. Gray: not simulated. Latency is 90 ms and the time in the queue."
    picture.label(8, picture.height + 16, note)
    return picture.svg()


def _simulated_minutes() -> Sequence[SimulatedMinute]:
    """Simulate a day with half an hour of more requests in the afternoon,
    and return each fifth minute.
    """
    day = Traffic.pattern("diurnal", low=150, high=2400).invocations
    rush = range(15 * 60, 15 * 60 + 30)
    traffic = Traffic(
        tuple(round(1.9 * count) if at in rush else count for at, count in enumerate(day))
    )
    policy = TargetTracking(target=_TARGET, metric="GPUUtilization")
    scaling = Scaling(
        min_capacity=_BOUNDS[0],
        max_capacity=_BOUNDS[1],
        initial_instance_count=2,
        policies=(policy,),
    )
    return simulate(traffic, scaling, Fleet(invocations_per_minute=_THROUGHPUT)).minutes[::5]


def _lines(
    metrics: Sequence[Sequence[Any]], minutes: Sequence[SimulatedMinute], highest: float
) -> list[Line]:
    """Return the shown metrics of a widget with their simulated values;
    a right axis has its own top.
    """
    shown = [each for each in metrics if each[-1].get("visible", True) and "label" in each[-1]]
    values = [_values(each[-1]["label"], minutes) for each in shown]
    sides = [each[-1].get("yAxis", "left") for each in shown]
    tops = {"left": highest, "right": 0.0}
    for side, found in zip(sides, values, strict=True):
        tops[side] = max(tops[side], *map(_rounded, found or [0]))
    return [
        Line(each[-1]["label"], found, tops[side] or 1)
        for each, found, side in zip(shown, values, sides, strict=True)
    ]


def _rounded(value: float) -> float:
    """Return a value rounded up to one digit, as the top of an axis."""
    size = 10 ** math.floor(math.log10(value)) if value > 0 else 1
    return math.ceil(value / size) * size


def _values(name: str, minutes: Sequence[SimulatedMinute]) -> list[float] | None:
    """Return the value of a metric in each minute; ``None`` if the simulation does not have it."""
    metric, _, statistic = name.partition(" p")
    if metric == "ModelLatency":
        share = int(statistic) / 100  # the requests that wait arrived evenly in the minute
        return [
            _LATENCY_MS + share * 60_000 * each.waiting / (each.in_service * _THROUGHPUT)
            for each in minutes
        ]
    of_minute = _OF_MINUTE.get(metric)
    return None if of_minute is None else [of_minute(each) for each in minutes]


#: An instance serves 600 requests a minute, each in 90 ms.
_THROUGHPUT, _LATENCY_MS, _TARGET, _BOUNDS = 600, 90, 60, (1, 8)
_OF_MINUTE: Mapping[str, Callable[[SimulatedMinute], float]] = {
    "Invocations": lambda minute: minute.arrived,
    "InvocationsPerInstance": lambda minute: minute.arrived / minute.in_service,
    "Invocation5XXErrors": lambda minute: minute.failed,
    "ConcurrentRequestsPerModel": lambda minute: (
        minute.waiting + minute.served * _LATENCY_MS / 60_000
    ),
    "GPUUtilization": lambda minute: 100 * minute.served / (minute.in_service * _THROUGHPUT),
    "InstanceCount": lambda minute: minute.in_service,
}
PICTURES: Mapping[str, Callable[[], str]] = {
    "road": road,
    "layers": layers,
    "update": update,
    "dashboard": dashboard,
}


def _layers() -> Mapping[str, tuple[str, ...]]:
    tree = ast.parse((PROJECT / "tests" / "project" / "test_layers.py").read_text(encoding="utf-8"))
    (found,) = (each for each in tree.body if isinstance(each, ast.AnnAssign))
    assert found.value is not None
    names: dict[str, tuple[str, ...]] = ast.literal_eval(found.value)
    return names


def _packages() -> Iterator[tuple[str, str, str]]:
    """Yield each package's name, its question and the packages from which it imports,
    the top one first.
    """
    text = (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for row in re.finditer(
        r"^\| `[\w/]+/` \| `(\w+)` \| ([^|]+\?) \| ([^|]*)\|", text, re.MULTILINE
    ):
        yield row[1], row[2], row[3].strip()


def _widgets() -> list[dict[str, Any]]:
    stack = cdk.Stack(cdk.App(), "Digits")
    models = ModelSource.from_directory(PROJECT / "assets" / "model_repositories" / "digits")
    endpoint = TritonEnsembleEndpoint(
        stack,
        "Endpoint",
        ensemble="digits",
        model_repository=TritonModelRepository(stack, "Models", source=models),
        instance_type=InstanceType.of("ml.g5.xlarge"),
    )
    endpoint.auto_scale_instance_count(
        min_capacity=_BOUNDS[0], max_capacity=_BOUNDS[1]
    ).scale_on_gpu_utilization("Gpu", target_utilization_percent=_TARGET)
    endpoint.add_dashboard("Dashboard")
    (found,) = Template.from_stack(stack).find_resources("AWS::CloudWatch::Dashboard").values()
    parts = found["Properties"]["DashboardBody"]["Fn::Join"][1]
    body = "".join(part if isinstance(part, str) else "x" for part in parts)
    widgets: list[dict[str, Any]] = json.loads(body)["widgets"]
    return widgets


def write_pictures(folder: Path) -> None:
    """Write the pictures to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        (folder / f"{name}.svg").write_text(draw(), encoding="utf-8")
