from __future__ import annotations

from typing import Any

from airflow.providers.amazon.aws.hooks.base_aws import AwsBaseHook
from airflow.providers.amazon.aws.hooks.s3 import S3Hook
from airflow.providers.amazon.aws.operators.sagemaker import (
    SageMakerTransformOperator,
)
from airflow.sdk import Param, PokeReturnValue, dag, task
from airflow.sdk.exceptions import AirflowFailException


@dag(
    params={
        "model": Param(
            "Batch-Model", description="the output ModelName of the stack"
        )
    }
)
def pictures() -> None:
    """Process a folder with a batch transform job of a `TritonModel`."""
    SageMakerTransformOperator(
        task_id="transform",
        config={
            "TransformJobName": "pictures-{{ ts_nodash | lower }}",
            "ModelName": "{{ params.model }}",
            "TransformInput": {
                "DataSource": {
                    "S3DataSource": {
                        "S3DataType": "S3Prefix",
                        "S3Uri": "s3://my-data/pictures/",
                    }
                },
                "ContentType": "application/vnd.sagemaker-triton.binary+json;json-header-size=0",
                "SplitType": "None",
            },
            "TransformOutput": {"S3OutputPath": "s3://my-data/answers/"},
            "TransformResources": {
                "InstanceType": "ml.g5.xlarge",
                "InstanceCount": 1,
            },
            "MaxConcurrentTransforms": 4,
        },
        deferrable=True,
    )


@dag(
    params={
        "request": Param(
            "s3://my-queue/async/input/1", description="a request in S3"
        )
    }
)
def embed_later() -> None:
    """Queue a request of an asynchronous endpoint, and wait for its response."""

    @task
    def queue(params: dict[str, Any]) -> dict[str, str]:
        runtime = AwsBaseHook(client_type="sagemaker-runtime").get_conn()
        answer = runtime.invoke_endpoint_async(
            EndpointName="embeddings-queue",
            ContentType="application/json",
            InputLocation=params["request"],
        )
        return {
            name: answer[name] for name in ("OutputLocation", "FailureLocation")
        }

    @task.sensor(poke_interval=10, timeout=3600, mode="reschedule")
    def response(files: dict[str, str]) -> PokeReturnValue:
        s3 = S3Hook()
        if s3.check_for_key(files["FailureLocation"]):
            raise AirflowFailException(s3.read_key(files["FailureLocation"]))
        is_there = s3.check_for_key(files["OutputLocation"])
        return PokeReturnValue(is_there, xcom_value=files["OutputLocation"])

    response(queue())


pictures()
embed_later()
