"""The properties of an endpoint that its variants share: network, encryption,
capture, queue, deployment.
"""

from __future__ import annotations

from constructs_triton_tools.operations.adopting.python_text import (
    Answer,
    Items,
    Options,
    call,
    literal,
    options_of,
)
from constructs_triton_tools.operations.adopting.stack.stack_code import StackCode


def host_options(code: StackCode, network: Answer) -> Options:
    """Return network, encryption and metrics; ``network`` is the answer that
    has VPC and isolation.
    """
    config = code.running.config
    metrics = options_of(
        config.get("MetricsConfig") or {},
        "MetricPublishFrequencyInSeconds",
        "EnableEnhancedMetrics",
        "EnableDetailedObservability",
        with_zero=True,
    )
    return {
        **_network(code, network.get("VpcConfig") or {}),
        **options_of(network, "EnableNetworkIsolation"),
        **code.key(config.get("KmsKeyId"), "volume"),
        **({"metrics_config": call("MetricsConfig", **metrics)} if metrics else {}),
    }


def _network(code: StackCode, vpc_config: Answer) -> Options:
    if not vpc_config:
        return {}
    ids = vpc_config["Subnets"]
    known = [
        code.running.vpc_ids[subnet_id] for subnet_id in ids if subnet_id in code.running.vpc_ids
    ]
    if len(known) != len(ids):
        code.adoption.refuse(
            "vpc-config",
            f"VPC of subnets {', '.join(ids)}: cannot be read; set vpc by hand in app.py",
        )
        return {}
    vpc = code.reference(
        "vpc",
        "ec2.Vpc.from_vpc_attributes",
        vpc_id=literal(known[0][0]),
        availability_zones=literal([zone for _, zone in known]),
        private_subnet_ids=literal(ids),
    )
    function = "ec2.SecurityGroup.from_security_group_id"
    groups = [
        call(function, "self", code.new_id("SecurityGroup"), literal(group))
        for group in vpc_config["SecurityGroupIds"]
    ]
    return {"vpc": vpc, "security_groups": Items(groups)}


def endpoint_options(code: StackCode) -> Options:
    """Return data capture, asynchronous inference and the deployment."""
    config = code.running.config
    capture = config.get("DataCaptureConfig")
    queue = config.get("AsyncInferenceConfig")
    return {
        **(_data_capture(code, capture) if capture else {}),
        **(_async_inference(code, queue) if queue else {}),
        **_deployment(code),
    }


def place_of(uri: str) -> tuple[str, str]:
    """Return the bucket and the prefix of a URI of S3."""
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    return bucket, prefix.rstrip("/")


def _data_capture(code: StackCode, config: Answer) -> Options:
    bucket, prefix = place_of(config["DestinationS3Uri"])
    if not prefix:
        code.adoption.refuse(
            "data-capture-prefix",
            f"data capture: writes to the root of s3://{bucket}, and the role would be allowed to "
            "write anywhere in it; set data_capture with a prefix by hand in app.py",
        )
        return {}
    if "EnableCapture" not in config:
        code.adoption.differ(
            "DescribeEndpointConfig.DataCaptureConfig.EnableCapture", "True, written out"
        )
    types = config.get("CaptureContentTypeHeader") or {}
    capture = call(
        "DataCapture",
        bucket=code.bucket(bucket, "capture"),
        prefix=literal(prefix),
        **options_of(config, "InitialSamplingPercentage", with_zero=True),
        capture_modes=literal(
            [option["CaptureMode"] for option in config.get("CaptureOptions", [])]
        ),
        json_content_types=literal(types.get("JsonContentTypes", [])),
        **options_of(types, "CsvContentTypes"),
        **options_of(config, "EnableCapture", with_zero=True),
        **code.key(config.get("KmsKeyId"), "capture"),
    )
    return {"data_capture": capture}


def _async_inference(code: StackCode, config: Answer) -> Options:
    output = config["OutputConfig"]
    bucket, prefix = place_of(output["S3OutputPath"])
    failures = output.get("S3FailurePath")
    failure_bucket, failure_prefix = (
        place_of(failures) if failures else (bucket, f"{prefix}-failures")
    )
    if not prefix or not failure_prefix or failure_bucket != bucket:
        code.adoption.refuse(
            "async-inference-prefix",
            "asynchronous inference: responses and failures need prefixes of one bucket; create an "
            "endpoint configuration with them, update the endpoint to it, and adopt it then",
            is_final=True,
        )
        return {}
    if not failures:
        code.adoption.differ(
            "DescribeEndpointConfig.AsyncInferenceConfig.OutputConfig.S3FailurePath",
            f"s3://{bucket}/{failure_prefix}, where failures are written",
        )
    code.adoption.not_read.append(
        "where callers put their requests: the role may read `async/input` of the bucket of the "
        "responses; set input_bucket and input_prefix of AsyncInferenceConfig "
        "to the place that your callers use"
    )
    notification = output.get("NotificationConfig") or {}
    queue = call(
        "AsyncInferenceConfig",
        bucket=code.bucket(bucket, "output"),
        output_prefix=literal(prefix),
        failure_prefix=literal(failure_prefix),
        **code.key(output.get("KmsKeyId"), "output"),
        **_topics(code, notification),
        **options_of(notification, "IncludeInferenceResponseIn"),
        **options_of(config.get("ClientConfig") or {}, "MaxConcurrentInvocationsPerInstance"),
    )
    return {"async_inference": queue}


def _topics(code: StackCode, config: Answer) -> Options:
    topics = options_of(config, "SuccessTopic", "ErrorTopic")
    return {
        name: code.reference(name, "sns.Topic.from_topic_arn", arn) for name, arn in topics.items()
    }


def _deployment(code: StackCode) -> Options:
    """Return how the last update replaced the fleet.

    Other rules of rollback are SageMaker's default.
    """
    config = code.running.endpoint.get("LastDeploymentConfig") or {}
    function, found = _replacement(config)
    alarms = (config.get("AutoRollbackConfiguration") or {}).get("Alarms", [])
    if alarms:
        name = "cloudwatch.Alarm.from_alarm_name"
        found["alarms"] = Items(
            [
                call(name, "self", code.new_id("RollbackAlarm"), literal(alarm["AlarmName"]))
                for alarm in alarms
            ]
        )
    if not (config.get("RollingUpdatePolicy") or config.get("BlueGreenUpdatePolicy") or alarms):
        return {}
    return {"deployment": call(f"Deployment.{function}", **found)}


def _replacement(config: Answer) -> tuple[str, Options]:
    """Return the method of ``Deployment`` for a type of update, and its sizes and times."""
    rolling = config.get("RollingUpdatePolicy")
    blue_green = config.get("BlueGreenUpdatePolicy") or {}
    if rolling:
        sizes = options_of(rolling, "MaximumBatchSize", "RollbackMaximumBatchSize")
        times = options_of(rolling, "WaitIntervalInSeconds", with_zero=True)
        return "rolling", {
            **sizes,
            **times,
            **options_of(rolling, "MaximumExecutionTimeoutInSeconds"),
        }
    routing = blue_green.get("TrafficRoutingConfiguration", {})
    times = options_of(blue_green, "TerminationWaitInSeconds", "MaximumExecutionTimeoutInSeconds")
    if routing.get("Type") not in ("CANARY", "LINEAR"):
        return "all_at_once", times
    sizes = options_of(
        {**routing, "StepSize": routing.get("LinearStepSize")}, "CanarySize", "StepSize"
    )
    waits = options_of(routing, "WaitIntervalInSeconds", with_zero=True)
    return f"blue_green_{routing['Type'].lower()}", {**sizes, **waits, **times}
