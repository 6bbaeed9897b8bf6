"""Writes a load test as a locustfile, for Locust's own workers on several machines."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from constructs_triton_client import Invocation

_TEMPLATE = '''\
"""Load test of the SageMaker endpoint {endpoint}. \
Written by `constructs-triton load-test --export-locust`.

    locust -f THIS_FILE --headless --users 100 --spawn-rate 10 --run-time 5m

Each user waits for its answer before it sends the next request, so a slow endpoint receives fewer
requests than planned, and the latencies do not count the time that those would have waited. """

import base64
import random
import time

import boto3
from botocore.config import Config
from locust import User, constant_throughput, task

ENDPOINT = {endpoint!r}
ENDPOINT_URL = {endpoint_url!r}
REGION = {region!r}
#: (weight, content type, parameters of InvokeEndpoint, body in base64)
REQUESTS = [
{requests}
]
BODIES = [base64.b64decode(body) for _, _, _, body in REQUESTS]
WEIGHTS = [weight for weight, _, _, _ in REQUESTS]


class EndpointUser(User):
    wait_time = constant_throughput(1)

    def on_start(self):
        # A retried request would count as one slow success.
        config = Config(retries={{"total_max_attempts": 1}}, read_timeout=70)
        self.runtime = boto3.client(
            "sagemaker-runtime", region_name=REGION, endpoint_url=ENDPOINT_URL, config=config
        )

    @task
    def invoke(self):
        (number,) = random.choices(range(len(REQUESTS)), weights=WEIGHTS)
        _, content_type, options, _ = REQUESTS[number]
        start, error, length = time.perf_counter(), None, 0
        try:
            answer = self.runtime.invoke_endpoint(
                EndpointName=ENDPOINT, ContentType=content_type, Body=BODIES[number], **options
            )
            length = len(answer["Body"].read())
        except Exception as raised:
            error = raised
        self.environment.events.request.fire(
            request_type="InvokeEndpoint",
            name=ENDPOINT,
            response_time=(time.perf_counter() - start) * 1000,
            response_length=length,
            exception=error,
        )
'''


def format_locustfile(
    endpoint: str,
    invocations: Sequence[tuple[float, Invocation]],
    *,
    endpoint_url: str | None = None,
    region: str | None = None,
) -> str:
    """Return the text of a locustfile that sends these invocations, each with its weight."""
    rows = (
        (
            weight,
            invocation.content_type,
            dict(invocation.options),
            base64.b64encode(invocation.body).decode(),
        )
        for weight, invocation in invocations
    )
    requests = "\n".join(f"    {row!r}," for row in rows)
    return _TEMPLATE.format(
        endpoint=endpoint, endpoint_url=endpoint_url, region=region, requests=requests
    )
