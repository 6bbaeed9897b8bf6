from __future__ import annotations

from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_stepfunctions as sfn

from constructs_triton import (
    AsyncInferenceConfig,
    InstanceType,
    ModelSource,
    TritonEnsembleEndpoint,
    TritonModelRepository,
)

app = cdk.App()
stack = cdk.Stack(app, "Search")
models = TritonModelRepository(
    stack, "Models", source=ModelSource.from_directory("models")
)


def endpoint(name: str, **options: Any) -> TritonEnsembleEndpoint:
    return TritonEnsembleEndpoint(
        stack,
        name.title(),
        model_repository=models,
        ensemble="embeddings",
        instance_type=InstanceType.of("ml.c6i.xlarge"),
        endpoint_name=name,
        **options,
    )


def call(id: str, service_call: str, state: dict[str, Any]) -> sfn.CustomState:
    resource = f"arn:{stack.partition}:states:::aws-sdk:{service_call}"
    return sfn.CustomState(
        stack, id, state_json={"Type": "Task", "Resource": resource, **state}
    )


def machine(id: str, start: sfn.IChainable) -> sfn.StateMachine:
    body = sfn.DefinitionBody.from_chainable(start)
    return sfn.StateMachine(
        stack, id, definition_body=body, timeout=cdk.Duration.hours(1)
    )


# Its input is a request, {"inputs": [...]}. Its output is the tensor.
online = endpoint("embeddings")
embed = call(
    "Embed",
    "sagemakerruntime:invokeEndpoint",
    {
        "Parameters": {
            "EndpointName": online.endpoint_name,
            "ContentType": "application/json",
            "Body.$": "States.JsonToString($)",
        },
        "ResultSelector": {"response.$": "States.StringToJson($.Body)"},
        "OutputPath": "$.response.outputs[0]",
    },
)
online.grant_invoke(
    machine("Answer", embed.add_retry(errors=["States.TaskFailed"], max_attempts=3))
)

# Its input is {"request": "s3://BUCKET/async/input/NAME"}. Its output is the location of the
# response.
queued = endpoint(
    "embeddings-queue",
    async_inference=AsyncInferenceConfig(bucket=s3.Bucket(stack, "Queue")),
)
queue = call(
    "Enqueue",
    "sagemakerruntime:invokeEndpointAsync",
    {
        "QueryLanguage": "JSONata",
        "Arguments": {
            "EndpointName": queued.endpoint_name,
            "ContentType": "application/json",
            "InputLocation": "{% $states.input.request %}",
        },
        "Assign": {
            "response": "{% $states.result.OutputLocation %}",
            "failure": "{% $states.result.FailureLocation %}",
        },
    },
)


def look_for(file: str) -> sfn.CustomState:
    """Succeed if the file exists."""
    path = f"$substringAfter(${file}, 's3://')"
    bucket, key = (
        f"{{% $substring{part}({path}, '/') %}}" for part in ("Before", "After")
    )
    state = {
        "Arguments": {"Bucket": bucket, "Key": key},
        "Output": {file: f"{{% ${file} %}}"},
    }
    return call(
        f"Look for the {file}",
        "s3:headObject",
        {"QueryLanguage": "JSONata", **state},
    )


wait = sfn.Wait.jsonata(
    stack, "Wait", time=sfn.WaitTime.duration(cdk.Duration.seconds(10))
)
response, failure = look_for("response"), look_for("failure")
failed = failure.add_catch(wait).next(
    sfn.Fail(stack, "Failed", cause="the model has refused the request")
)
queue.next(wait).next(response.add_catch(failed))
queued.grant_invoke_async(machine("Wait for the response", queue))
app.synth()
