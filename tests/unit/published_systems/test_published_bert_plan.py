"""The BERT benchmark: its table follows from what was measured, and the template from the table."""

from __future__ import annotations

import argparse
import csv
import json
import re
import runpy
import shlex
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from article_calls import article_calls, differences, template_calls
from published_examples import EXAMPLES, templates

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.cli import recommender

EXAMPLE = EXAMPLES / "bert_benchmark"

pytestmark = pytest.mark.xdist_group("examples")


@pytest.fixture(scope="module")
def benchmark() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLE / "benchmark.py"))


@pytest.fixture
def variants(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """The example's module, which writes into ``tmp_path / "build"``."""
    monkeypatch.setenv("CDK_OUTDIR", str(tmp_path / "cdk.out"))
    return runpy.run_path(str(EXAMPLE / "variants.py"))


def test_plan_reproduces_all_published_counts_and_costs(benchmark: dict[str, Any]) -> None:
    """Each of the 24 rows gets the instance count and the hourly cost that the article prints."""
    with (EXAMPLE / "benchmark.csv").open(newline="") as file:
        published = [
            (int(row["published_instance_count"]), Decimal(row["published_cost_per_hour"]))
            for row in csv.DictReader(file)
        ]
    planned = [(plan.initial_instance_count, plan.cost_per_hour) for plan in benchmark["plans"]()]
    assert len(published) == 24
    assert planned == published


def test_every_measured_configuration_can_be_built(
    benchmark: dict[str, Any], variants: dict[str, Any]
) -> None:
    """The names of the benchmark are those of the eight configurations,
    each on three instance types.
    """
    names = [plan.configuration for plan in benchmark["plans"]()]
    assert {name: names.count(name) for name in names} == dict.fromkeys(variants["VARIANTS"], 3)


def test_variants_differ_as_in_the_article(variants: dict[str, Any]) -> None:
    """Within a framework the four differ in batching and instance groups, and in nothing else."""
    for framework, platform in (("pt", "pytorch_libtorch"), ("trt", "tensorrt_plan")):
        base = variants["VARIANTS"][f"{framework}-base"]
        assert base.platform == platform
        for suffix, batches, counts in (("db", True, []), ("ig", False, [2]), ("ig-db", True, [2])):
            config = variants["VARIANTS"][f"{framework}-{suffix}"]
            assert (config.dynamic_batching is not None) is batches
            assert [(group.count, group.kind) for group in config.instance_group] == [
                (count, "KIND_GPU") for count in counts
            ]
            assert config.with_(dynamic_batching=None, instance_group=[]) == base


def test_cheapest_within_the_latency_is_planned(benchmark: dict[str, Any]) -> None:
    """Without a choice it is trt-db on ml.g4dn.2xlarge;
    a named row is taken though it is too slow.
    """
    best = benchmark["plan_for"]()
    assert (best.configuration, best.instance_type, best.initial_instance_count) == (
        "trt-db",
        "ml.g4dn.2xlarge",
        23,
    )
    slow = benchmark["plan_for"]("trt-ig-db", "ml.g4dn.xlarge")
    assert (slow.initial_instance_count, slow.cost_per_hour) == (10, Decimal("7.364"))
    with pytest.raises(InvalidValueError, match="latency_ms"):
        benchmark["plan_for"]("pt-base")
    with pytest.raises(LookupError, match=r"no row for pt-base on ml\.g5\.xlarge"):
        benchmark["plan_for"]("pt-base", "ml.g5.xlarge")


def test_template_has_the_numbers_of_the_plan(benchmark: dict[str, Any]) -> None:
    """Instance type, count, bounds and target of the template are the plan's."""
    plan = benchmark["plan_for"]()
    calls = template_calls(templates("bert_benchmark")["Bert"])
    (variant,) = calls["create_endpoint_config"]["ProductionVariants"]
    assert variant["InstanceType"] == plan.instance_type
    assert variant["InitialInstanceCount"] == plan.initial_instance_count
    bounds = calls["register_scalable_target"]
    assert (bounds["MinCapacity"], bounds["MaxCapacity"]) == (plan.min_capacity, plan.max_capacity)
    tracking = calls["put_scaling_policy"]["TargetTrackingScalingPolicyConfiguration"]
    assert tracking["TargetValue"] == plan.target_invocations_per_minute == 667.5
    assert tracking["PredefinedMetricSpecification"] == {
        "PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"
    }


def test_job_of_the_readme_equals_the_articles(tmp_path: Path) -> None:
    """The README's `plan recommender request` writes a default job,
    and each parameter of the article's.
    """
    readme = (EXAMPLE / "README.md").read_text(encoding="utf-8").replace("\\\n", " ")
    parser = argparse.ArgumentParser()
    recommender.add_arguments(parser)
    for command in re.findall(r"constructs-triton plan recommender (request .*)", readme):
        words = shlex.split(re.sub(r"-o (?=\S+\.json)", f"-o {tmp_path}/", command))
        assert recommender.run(parser.parse_args(words)) == 0
    types, job = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("types", "job"))
    assert (types["JobType"], sorted(types["InputConfig"])) == (
        "Default",
        ["ContainerConfig", "ModelName"],
    )
    assert types["InputConfig"]["ContainerConfig"] == job["InputConfig"]["ContainerConfig"]
    ours = {"create_inference_recommendations_job": job}
    assert differences(article_calls(EXAMPLE), ours) == set()
