"""The properties of an endpoint that its variants share: network, encryption, capture, queue, deployment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from constructs_triton.operations.adopting.python_text import Call, Expression, literal
from constructs_triton.operations.adopting.stack_code import StackCode, list_of
from constructs_triton.operations.adopting.variant_code import duration

__all__ = ["deployment_options", "endpoint_options", "host_options"]

Answer = Mapping[str, Any]
Options = dict[str, Expression]
_CONFIG = frozenset(
    [
        "EndpointConfigName",
        "EndpointConfigArn",
        "ProductionVariants",
        "ShadowProductionVariants",
        "DataCaptureConfig",
        "KmsKeyId",
        "CreationTime",
        "AsyncInferenceConfig",
        "ExecutionRoleArn",
        "VpcConfig",
        "EnableNetworkIsolation",
        "MetricsConfig",
        "ResponseMetadata",
    ]
)
_MODEL = frozenset(
    [
        "ModelName",
        "ModelArn",
        "PrimaryContainer",
        "Containers",
        "ExecutionRoleArn",
        "VpcConfig",
        "CreationTime",
        "EnableNetworkIsolation",
        "DeploymentRecommendation",
        "InferenceExecutionConfig",
        "ResponseMetadata",
    ]
)


def host_options(code: StackCode, model: Answer, *, of_config: bool = False) -> Options:
    """Return network and encryption: of a model, and of the configuration."""
    config = code.running.config
    code.adoption.refuse_rest("endpoint configuration", config, _CONFIG)
    if not of_config:
        code.adoption.refuse_rest(f"model {model.get('ModelName')}", model, _MODEL)
    found = _network(code, model.get("VpcConfig") or {})
    if model.get("EnableNetworkIsolation"):
        found["enable_network_isolation"] = "True"
    key = code.key(config["KmsKeyId"], "volume") if config.get("KmsKeyId") else None
    if key is not None:
        found["encryption_key"] = key
    metrics = _metrics(code, config.get("MetricsConfig") or {})
    return {**found, **({} if metrics is None else {"metrics_config": metrics})}


def _network(code: StackCode, vpc_config: Answer) -> Options:
    if not vpc_config:
        return {}
    ids = vpc_config["Subnets"]
    known = [code.running.vpc_ids[each] for each in ids if each in code.running.vpc_ids]
    if len(known) != len(ids):
        code.adoption.refuse(
            "vpc-config", f"VPC of subnets {', '.join(ids)}: cannot be read; set vpc by hand in app.py"
        )
        return {}
    module = code.module("ec2", "aws_ec2")
    zones = list_of([literal(zone) for _, zone in known])
    keywords: Options = {
        "vpc_id": literal(known[0][0]),
        "availability_zones": zones,
        "private_subnet_ids": list_of([literal(each) for each in ids]),
    }
    vpc = Call(f"{module}.Vpc.from_vpc_attributes", ["self", code.new_id("Vpc")], keywords)
    found: Options = {"vpc": code.shared("vpc", ",".join(ids), "vpc", vpc)}
    groups = [
        Call(
            f"{module}.SecurityGroup.from_security_group_id",
            ["self", code.new_id("SecurityGroup"), literal(each)],
        )
        for each in vpc_config["SecurityGroupIds"]
    ]
    return {**found, "security_groups": list_of(groups)}


def _metrics(code: StackCode, config: Answer) -> Expression | None:
    found: Options = {}
    if config.get("MetricPublishFrequencyInSeconds"):
        found["metric_publish_frequency"] = duration(config["MetricPublishFrequencyInSeconds"])
    for keyword, member in (
        ("enable_enhanced_metrics", "EnableEnhancedMetrics"),
        ("enable_detailed_observability", "EnableDetailedObservability"),
    ):
        if member in config:
            found[keyword] = str(bool(config[member]))
    return Call(code.ours("MetricsConfig"), [], found) if found else None


def endpoint_options(code: StackCode) -> Options:
    """Return data capture, asynchronous inference and the deployment."""
    config = code.running.config
    found: Options = {}
    if config.get("DataCaptureConfig"):
        found |= _data_capture(code, config["DataCaptureConfig"])
    if config.get("AsyncInferenceConfig"):
        found |= _async_inference(code, config["AsyncInferenceConfig"])
    return {**found, **deployment_options(code)}


def _place(uri: str) -> tuple[str, str]:
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    return bucket, prefix.rstrip("/")


def _data_capture(code: StackCode, config: Answer) -> Options:
    bucket, prefix = _place(config["DestinationS3Uri"])
    if not prefix:
        code.adoption.refuse(
            "data-capture-prefix",
            f"data capture: writes to the root of s3://{bucket}, and the role would be allowed to write "
            "anywhere in it; set data_capture with a prefix by hand in app.py",
        )
        return {}
    keywords: Options = {"bucket": code.bucket(bucket, "capture"), "prefix": literal(prefix)}
    if config["InitialSamplingPercentage"] != 100:
        keywords["initial_sampling_percentage"] = str(config["InitialSamplingPercentage"])
    modes = [each["CaptureMode"] for each in config.get("CaptureOptions", [])]
    if modes != ["Input", "Output"]:
        keywords["capture_modes"] = literal(modes)
    key = code.key(config["KmsKeyId"], "capture") if config.get("KmsKeyId") else None
    if key is not None:
        keywords["encryption_key"] = key
    types = config.get("CaptureContentTypeHeader") or {}
    if types.get("JsonContentTypes", []) != ["application/json"]:
        keywords["json_content_types"] = literal(types.get("JsonContentTypes", []))
    if types.get("CsvContentTypes"):
        keywords["csv_content_types"] = literal(types["CsvContentTypes"])
    if config.get("EnableCapture") is False:
        keywords["enable_capture"] = "False"
    elif "EnableCapture" not in config:
        code.adoption.differ("DescribeEndpointConfig.DataCaptureConfig.EnableCapture", "True, written out")
    return {"data_capture": Call(code.ours("DataCapture"), [], keywords)}


def _async_inference(code: StackCode, config: Answer) -> Options:
    output = config["OutputConfig"]
    bucket, prefix = _place(output["S3OutputPath"])
    failures = output.get("S3FailurePath")
    failure_bucket, failure_prefix = _place(failures) if failures else (bucket, f"{prefix}-failures")
    path = "DescribeEndpointConfig.AsyncInferenceConfig.OutputConfig"
    if not prefix or not failure_prefix or failure_bucket != bucket:
        code.adoption.refuse(
            "async-inference-prefix",
            "asynchronous inference: responses and failures need prefixes of one bucket; set "
            "async_inference by hand in app.py",
            is_final=True,
        )
        return {}
    if not failures:
        code.adoption.differ(
            f"{path}.S3FailurePath", f"s3://{bucket}/{failure_prefix}, where failures are written"
        )
    keywords: Options = {
        "bucket": code.bucket(bucket, "output"),
        "output_prefix": literal(prefix),
        "failure_prefix": literal(failure_prefix),
    }
    key = code.key(output["KmsKeyId"], "output") if output.get("KmsKeyId") else None
    if key is not None:
        keywords["encryption_key"] = key
    keywords |= _topics(code, output.get("NotificationConfig") or {})
    concurrency = (config.get("ClientConfig") or {}).get("MaxConcurrentInvocationsPerInstance")
    if concurrency:
        keywords["max_concurrent_invocations_per_instance"] = str(concurrency)
    code.adoption.not_read.append(
        "where callers put their requests: the role may read `async/input` of the bucket of the responses; "
        "set input_bucket and input_prefix of AsyncInferenceConfig to the place that your callers use"
    )
    return {"async_inference": Call(code.ours("AsyncInferenceConfig"), [], keywords)}


def _topics(code: StackCode, config: Answer) -> Options:
    found: Options = {}
    for keyword, member in (("success_topic", "SuccessTopic"), ("error_topic", "ErrorTopic")):
        if config.get(member):
            module, construct_id = code.module("sns", "aws_sns"), code.new_id(keyword.title())
            topic = Call(f"{module}.Topic.from_topic_arn", ["self", construct_id, literal(config[member])])
            found[keyword] = code.shared("topic", f"{keyword}{config[member]}", keyword, topic)
    if config.get("IncludeInferenceResponseIn"):
        found["include_inference_response_in"] = literal(config["IncludeInferenceResponseIn"])
    return found


def deployment_options(code: StackCode) -> Options:
    """Return how the last update replaced the fleet. Other rules of rollback are SageMaker's default."""
    config = code.running.endpoint.get("LastDeploymentConfig") or {}
    alarms = [each["AlarmName"] for each in (config.get("AutoRollbackConfiguration") or {}).get("Alarms", [])]
    call = _rolling(code, config["RollingUpdatePolicy"]) if config.get("RollingUpdatePolicy") else None
    if config.get("BlueGreenUpdatePolicy"):
        call = _blue_green(code, config["BlueGreenUpdatePolicy"])
    if call is None and not alarms:
        return {}
    deployment = code.ours("Deployment")
    function, keywords = call or ("all_at_once", {})
    if alarms:
        module = code.module("cloudwatch", "aws_cloudwatch")
        keywords["alarms"] = list_of(
            [
                Call(f"{module}.Alarm.from_alarm_name", ["self", code.new_id("RollbackAlarm"), literal(each)])
                for each in alarms
            ]
        )
    return {"deployment": Call(f"{deployment}.{function}", [], keywords)}


def _size(code: StackCode, size: Answer) -> Call:
    function = "percent" if size["Type"] == "CAPACITY_PERCENT" else "instances"
    return Call(f"{code.ours('CapacitySize')}.{function}", [str(size["Value"])])


def _rolling(code: StackCode, policy: Answer) -> tuple[str, Options]:
    found: Options = {
        "maximum_batch_size": _size(code, policy["MaximumBatchSize"]),
        "wait_interval": duration(policy["WaitIntervalInSeconds"]),
    }
    if policy.get("RollbackMaximumBatchSize"):
        found["rollback_maximum_batch_size"] = _size(code, policy["RollbackMaximumBatchSize"])
    if policy.get("MaximumExecutionTimeoutInSeconds"):
        found["maximum_execution_timeout"] = duration(policy["MaximumExecutionTimeoutInSeconds"])
    return "rolling", found


def _blue_green(code: StackCode, policy: Answer) -> tuple[str, Options]:
    routing = policy["TrafficRoutingConfiguration"]
    found: Options = {}
    function = "all_at_once"
    if routing["Type"] == "CANARY":
        function, found["canary_size"] = "blue_green_canary", _size(code, routing["CanarySize"])
    elif routing["Type"] == "LINEAR":
        function, found["step_size"] = "blue_green_linear", _size(code, routing["LinearStepSize"])
    if function != "all_at_once":
        found["wait_interval"] = duration(routing["WaitIntervalInSeconds"])
    for keyword, member in (
        ("termination_wait", "TerminationWaitInSeconds"),
        ("maximum_execution_timeout", "MaximumExecutionTimeoutInSeconds"),
    ):
        if policy.get(member):
            found[keyword] = duration(policy[member])
    return function, found
