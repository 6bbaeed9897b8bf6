"""``container_metrics``: the archive with the publisher, its variables, refusals, metrics,
and the price.
"""

from __future__ import annotations

import tarfile
from functools import partial
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_s3 as s3
from cdk_apps import (
    add_endpoint,
    add_ensemble,
    add_many,
    flat,
    make_stack,
    resources,
    synthesize,
    write_model,
)

from constructs_triton import (
    AsyncInferenceConfig,
    CompressionType,
    InstanceType,
    ModelSource,
    TritonEnvironment,
    TritonImage,
    TritonModelRepository,
    TritonVariant,
)
from constructs_triton.testing import assert_update_keeps_serving
from constructs_triton_core.errors import InvalidValueError

CPU = InstanceType.of("ml.m5.xlarge")
serve = partial(add_ensemble, instance_type=CPU)
publish = partial(serve, container_metrics=True)


def containers(stack: cdk.Stack) -> dict[str, Any]:
    """The container of each model, by the model's logical ID."""
    models = resources(synthesize(stack), "AWS::SageMaker::Model")
    return {name: model["Properties"]["PrimaryContainer"] for name, model in models.items()}


def variables(stack: cdk.Stack, name: str) -> list[str]:
    """The values of an environment variable in all containers."""
    return [container["Environment"][name] for container in containers(stack).values()]


def properties(stack: cdk.Stack, resource_type: str) -> list[dict[str, Any]]:
    """The properties of the resources of a type."""
    found = resources(synthesize(stack), resource_type).values()
    return [resource["Properties"] for resource in found]


def metric_values(expression: cloudwatch.MathExpression) -> list[cloudwatch.Metric]:
    """The metrics of an expression, without expressions in it."""
    used = expression.using_metrics.values()
    return [metric for metric in used if isinstance(metric, cloudwatch.Metric)]


def model_files(stack: cdk.Stack, id: str) -> list[str]:
    """The members of the archive of an endpoint's model."""
    found = containers(stack).items()
    (container,) = (container for name, container in found if name.startswith(id))
    key = container["ModelDataUrl"].rsplit("/", 1)[1]
    app = stack.node.root
    assert isinstance(app, cdk.App)
    with tarfile.open(Path(app.outdir) / key) as tar:
        return tar.getnames()


def test_the_archive_has_the_publisher_and_the_server_loads_it(
    stack: cdk.Stack, path: Path
) -> None:
    """The default model stays, a further model is packed and loaded, and metrics are on."""
    publish(stack, path, endpoint_name="shop")
    (container,) = containers(stack).values()
    assert container["Environment"] == {
        "CONTAINER_METRICS_ENDPOINT": "shop",
        "CONTAINER_METRICS_VARIANT": "AllTraffic",
        "SAGEMAKER_TRITON_ADDITIONAL_ARGS": "--load-model=_metrics",
        "SAGEMAKER_TRITON_ALLOW_METRICS": "true",
        "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "pipeline",
        "SAGEMAKER_TRITON_LOG_VERBOSE": "false",
    }
    names = model_files(stack, "Endpoint")
    assert {name.split("/")[0] for name in names} == {"_metrics", "pipeline", "scale", "shift"}
    assert "_metrics/1/model.py" in names


def test_without_the_option_nothing_changes(path: Path) -> None:
    """An endpoint without it has the same archive as before,
    also beside one of the same models with it.
    """
    alone = make_stack()
    serve(alone, path)

    beside = make_stack()
    publish(beside, path, "Other")
    serve(beside, path, container_metrics=False)

    assert containers(alone).items() <= containers(beside).items()


def test_endpoints_of_the_same_models_share_the_archive(stack: cdk.Stack, path: Path) -> None:
    """The archive has no name of an endpoint, so it is uploaded once."""
    publish(stack, path, "A")
    publish(stack, path, "B")
    first, second = containers(stack).values()
    assert first["ModelDataUrl"] == second["ModelDataUrl"]
    assert variables(stack, "CONTAINER_METRICS_ENDPOINT") == ["Test/A", "Test/B"]


def test_variants_publish_under_their_own_names_and_the_price_is_stated_once(path: Path) -> None:
    """Each variant has its dimension; the price is one warning on the endpoint."""
    stack = make_stack()
    variants = [TritonVariant(variant_name="Blue"), TritonVariant(variant_name="Green")]
    endpoint = publish(stack, path, variants=variants)

    assert set(variables(stack, "CONTAINER_METRICS_VARIANT")) == {"Blue", "Green"}
    texts = [str(entry.data) for entry in endpoint.node.metadata]
    (price,) = (text for text in texts if "custom metrics" in text)
    assert "3 models publish 21 custom metrics, about $6.30 a month" in price
    metric = endpoint.variant("Green").container_metrics.metric("Requests", "scale")
    assert metric.dimensions == {"Endpoint": "Test/Endpoint", "Variant": "Green", "Model": "scale"}


def test_a_nested_stack_publishes_under_the_name_of_its_top_stack(
    stack: cdk.Stack, path: Path
) -> None:
    """The name of a nested stack is known only in the deployment."""
    nested = cdk.NestedStack(stack, "Inner")
    endpoint = publish(nested, path)
    assert endpoint.container_metrics.endpoint == "Test/Inner/Endpoint"


def test_times_are_divided_by_requests_over_all_instances(path: Path) -> None:
    """Average times are quotients of sums, and the batch size is inferences by executions."""
    metrics = publish(make_stack(), path).container_metrics
    quotients = [
        (metrics.queue_time("scale"), ["QueueTime", "Requests"]),
        (metrics.compute_time("scale"), ["ComputeTime", "Requests"]),
        (metrics.batch_size("scale"), ["Inferences", "Executions"]),
    ]
    for quotient, names in quotients:
        used = metric_values(quotient)
        assert [metric.metric_name for metric in used] == names
        assert {metric.statistic for metric in used} == {"Sum"}
        total, number = quotient.using_metrics
        assert quotient.expression == f"IF({number} > 0, {total} / {number}, 0)"

    reporting = metrics.reporting_instances()
    assert reporting.expression == "published * 60 / 300"
    (published,) = metric_values(reporting)
    assert published.statistic == "SampleCount"


def test_metrics_of_the_models_themselves_are_published(path: Path) -> None:
    """The publisher gets their names, each is a metric of the variant, and has a price."""
    stack = make_stack()
    names = ["rejected_requests", "tokens_sum"]
    endpoint = publish(stack, path, custom_metrics=names)

    assert variables(stack, "CONTAINER_METRICS_CUSTOM") == ["rejected_requests,tokens_sum"]
    metric = endpoint.container_metrics.custom_metric("tokens_sum")
    assert (metric.namespace, metric.metric_name, metric.statistic) == (
        "Triton",
        "tokens_sum",
        "Sum",
    )
    assert metric.dimensions == {"Endpoint": "Test/Endpoint", "Variant": "AllTraffic"}
    texts = [str(entry.data) for entry in endpoint.node.metadata]
    assert any("publish 23 custom metrics, about $6.90" in text for text in texts)
    with pytest.raises(InvalidValueError, match=r'got "tokens_sun"; did you mean "tokens_sum"\?'):
        endpoint.container_metrics.custom_metric("tokens_sun")


@pytest.mark.parametrize(
    ("props", "message"),
    [
        ({"container_metrics": False}, r"add container_metrics=True"),
        (
            {"custom_metrics": "rejected"},
            r'must be a list, got "rejected"; write \["rejected_requests"\]',
        ),
        ({"custom_metrics": ["rejected requests"]}, r'got "rejected requests"'),
        ({"custom_metrics": [cdk.Fn.import_value("Name")]}, "must be names"),
        ({"custom_metrics": ["Endpoint"]}, "rename the family"),
        ({"custom_metrics": ["nv_inference_count"]}, r'got "nv_inference_count" of Triton'),
        ({"custom_metrics": ["a", "b", "a"]}, r'got "a" twice'),
        ({"custom_metrics": [f"m{number}" for number in range(51)]}, "at most 50, got 51"),
    ],
)
def test_names_that_no_family_can_have_are_refused(
    path: Path, props: dict[str, Any], message: str
) -> None:
    """Nothing would be published under them."""
    with pytest.raises(InvalidValueError, match=message):
        publish(make_stack(), path, **{"custom_metrics": ["rejected"], **props})


def test_a_model_that_is_not_in_the_archive_has_no_metrics(path: Path) -> None:
    """A misspelled model or metric would be a graph without data."""
    metrics = publish(make_stack(), path).container_metrics
    with pytest.raises(InvalidValueError, match=r'got "QueueTimes"; did you mean "QueueTime"\?'):
        metrics.metric("QueueTimes", "scale")
    with pytest.raises(InvalidValueError, match=r'got "scales"; did you mean "scale"\?'):
        metrics.queue_time("scales")


def test_an_endpoint_without_the_option_has_no_metrics_of_triton(path: Path) -> None:
    """The message names the option."""
    with pytest.raises(InvalidValueError, match="set container_metrics=True on the construct"):
        _ = serve(make_stack(), path).container_metrics


OFF = {"SAGEMAKER_TRITON_ALLOW_METRICS": "false"}


@pytest.mark.parametrize(
    ("props", "message"),
    [
        ({"image": TritonImage.dlc("23.02")}, "needs an image of version 23.07 or later"),
        ({"environment": TritonEnvironment(allow_metrics=False)}, "got allow_metrics=false"),
        ({"environment": OFF}, "got allow_metrics=false"),
        (
            {"environment": TritonEnvironment(additional_args=["--metrics-address=::1"])},
            "--metrics-address",
        ),
        (
            {
                "environment": TritonEnvironment(
                    additional_args=["--metrics-config=counter_latencies=false"]
                )
            },
            "counter_latencies=false",
        ),
        ({"environment": {"CONTAINER_METRICS_INTERVAL": "0.5"}}, r'1 to 3600 seconds, got "0.5"'),
        ({"environment": {"CONTAINER_METRICS_INTERVAL": "1m"}}, r'1 to 3600 seconds, got "1m"'),
        ({"compression_type": CompressionType.NONE}, "packed at synth, got uncompressed files"),
    ],
)
def test_what_would_publish_nothing_is_refused(
    path: Path, props: dict[str, Any], message: str
) -> None:
    """Each of these would start a server whose metrics cannot be read."""
    stack = make_stack()
    with pytest.raises(InvalidValueError, match=message):
        publish(stack, path, **props)
    assert stack.node.try_find_child("Endpoint") is None


def test_a_model_of_the_publishers_name_is_refused(path: Path) -> None:
    """Your own model is not replaced."""
    write_model(path, "_metrics")
    with pytest.raises(
        InvalidValueError, match=r'adds a model "_metrics", but .* has one of that name'
    ):
        publish(make_stack(), path)


def test_an_archive_that_is_packed_elsewhere_is_refused(stack: cdk.Stack) -> None:
    """Nothing can be added to it."""
    bucket = s3.Bucket.from_bucket_name(stack, "Bucket", "models")
    repository = TritonModelRepository(
        stack, "Models", source=ModelSource.from_bucket(bucket, "archives/m.tar.gz")
    )
    with pytest.raises(
        InvalidValueError, match=r"packed at synth, got the archive archives/m\.tar\.gz"
    ):
        add_endpoint(stack, repository, model="m", container_metrics=True)


def test_a_multi_model_endpoint_is_refused(stack: cdk.Stack, path: Path) -> None:
    """Its server starts without models."""
    with pytest.raises(
        InvalidValueError, match="container_metrics: not supported on multi-model endpoints"
    ):
        add_many(stack, path, container_metrics=True)


def test_alarms_on_the_queue_of_each_model_and_on_missing_metrics(
    stack: cdk.Stack, path: Path
) -> None:
    """Each model has an alarm on its queue, and metrics that stop are an alarm
    because data is missing.
    """
    endpoint = publish(stack, path)
    alarms = endpoint.add_alarms(queue_time=cdk.Duration.millis(50)).alarms
    assert {name for name in alarms if "Queue" in name} == {
        "AllTrafficQueueTimepipeline",
        "AllTrafficQueueTimescale",
        "AllTrafficQueueTimeshift",
    }

    queue = alarm_about(stack, 'too long in the queue of model "scale"')
    assert queue["Threshold"] == 50_000
    expressions = [metric.get("Expression") for metric in queue["Metrics"]]
    assert expressions == ["IF(requests1 > 0, queuetime1 / requests1, 0)", None, None]

    missing = alarm_about(stack, "No instance publishes")
    (counted,) = missing["Metrics"]
    assert counted["MetricStat"]["Stat"] == "SampleCount"
    assert counted["MetricStat"]["Period"] == 300
    assert (missing["EvaluationPeriods"], missing["TreatMissingData"]) == (6, "breaching")


def alarm_about(stack: cdk.Stack, text: str) -> dict[str, Any]:
    """The properties of the alarm whose description contains a text."""
    alarms = properties(stack, "AWS::CloudWatch::Alarm")
    (found,) = (alarm for alarm in alarms if text in str(alarm["AlarmDescription"]))
    return found


def test_alarms_on_metrics_that_are_not_published(stack: cdk.Stack, path: Path) -> None:
    """Without the option there is no alarm on missing metrics,
    and a threshold for the queue is refused.
    """
    assert not [name for name in serve(stack, path).add_alarms().alarms if "Metrics" in name]
    with pytest.raises(InvalidValueError, match="set container_metrics=True"):
        serve(stack, path, "Other").add_alarms(queue_time=cdk.Duration.millis(50))


def test_an_asynchronous_endpoint_may_have_no_instances(stack: cdk.Stack, path: Path) -> None:
    """Its metrics are missing when it has scaled to zero, which is no failure."""
    queue = AsyncInferenceConfig(bucket=s3.Bucket(stack, "Answers"))
    endpoint = publish(stack, path, async_inference=queue)
    assert "AllTrafficContainerMetricsMissing" not in endpoint.add_alarms().alarms
    without = publish(make_stack(), path)
    alarms = without.add_alarms(container_metrics_missing_for=None).alarms
    assert "AllTrafficContainerMetricsMissing" not in alarms


def test_the_dashboard_shows_the_models_of_an_endpoint_that_publishes(
    stack: cdk.Stack, path: Path
) -> None:
    """A row has queue and compute time by model; without the option there is none."""
    publish(stack, path).add_dashboard()
    serve(stack, path, "Other").add_dashboard()

    dashboards = properties(stack, "AWS::CloudWatch::Dashboard")
    assert len(dashboards) == 2
    drawn = " ".join(flat(dashboard["DashboardBody"]) for dashboard in dashboards)
    assert drawn.count("AllTraffic: queue and compute time by model") == 1
    assert drawn.count("scale: queue") == 1


def test_an_endpoint_that_runs_can_turn_it_on(path: Path) -> None:
    """In a rehearsal the endpoint answers during the whole update,
    which adds a policy on queue time too.
    """
    old = make_stack()
    endpoint = serve(old, path, verify_update=True)
    count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=3)
    count.scale_on_concurrent_requests("Load", target_concurrent_requests=4)

    new = make_stack()
    endpoint = publish(new, path, verify_update=True)
    count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=3)
    count.scale_on_concurrent_requests("Load", target_concurrent_requests=4)
    count.scale_out_on_queue_time("Queue", model="scale", target_queue_time=cdk.Duration.millis(20))
    endpoint.add_alarms(queue_time=cdk.Duration.millis(50))

    assert_update_keeps_serving(old, new, failures="none", orders=1)


def test_a_response_cache_has_two_more_metrics_in_the_price(
    stack: cdk.Stack, tmp_path: Path
) -> None:
    """Hits and misses are published only with a cache."""
    write_model(tmp_path, "m")
    environment = TritonEnvironment(additional_args=["--cache-config=local,size=1048576"])
    endpoint = add_endpoint(
        stack,
        tmp_path,
        model=None,
        instance_type=CPU,
        environment=environment,
        container_metrics=True,
    )
    texts = [str(entry.data) for entry in endpoint.node.metadata]
    assert any("1 model publishes 9 custom metrics, about $2.70" in text for text in texts)
