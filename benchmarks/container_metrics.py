"""The cost of ``container_metrics``: the latency of an ensemble with the model that publishes, and
without.

    python benchmarks/container_metrics.py [--count N] [--rounds N]

Two local endpoints run side by side, and the same client calls them in turns, so that other load on
the machine affects both. Metrics are published each second, 60 times as often as in AWS.
"""

from __future__ import annotations

import argparse
import http.client
import statistics
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import aws_cdk as cdk
import numpy as np

from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonEnsembleEndpoint,
    TritonModelRepository,
)
from constructs_triton_client.wire import encode_request
from constructs_triton_tools.local import LocalEndpoint

MODELS = Path(__file__).parents[1] / "assets" / "model_repositories" / "alerts"
NAMES = {"without": False, "with": True}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=400, help="requests of a round (default: 400)")
    parser.add_argument("--rounds", type=int, default=8, help="rounds (default: 8)")
    arguments = parser.parse_args()
    ratios: list[float] = []
    with tempfile.TemporaryDirectory() as folder, LocalEndpoint.from_app(make_app(folder)) as local:
        url = urlsplit(local.endpoint_url)
        connection = http.client.HTTPConnection(str(url.hostname), url.port)
        print(f"{arguments.count} requests to each   p50 without   p50 with   ratio")
        for _ in range(arguments.rounds):
            without, with_metrics = medians(connection, arguments.count)
            ratios.append(with_metrics / without)
            print(f"{without:31.2f} ms {with_metrics:7.2f} ms {ratios[-1]:7.3f}")
    print(f"median ratio {statistics.median(ratios):.3f}")


def make_app(folder: str) -> cdk.App:
    """One endpoint without the option, and one with it."""
    app = cdk.App(outdir=f"{folder}/cdk.out")
    stack = cdk.Stack(app, "Benchmark")
    repository = TritonModelRepository(stack, "Models", source=ModelSource.from_directory(MODELS))
    for name, publishes in NAMES.items():
        TritonEnsembleEndpoint(
            stack,
            name.capitalize(),
            endpoint_name=name,
            model_repository=repository,
            ensemble="alerts",
            instance_type=InstanceType.of("ml.m5.xlarge"),
            environment={"CONTAINER_METRICS_INTERVAL": "1"} if publishes else None,
            container_metrics=publishes,
        )
    return app


def medians(connection: http.client.HTTPConnection, count: int) -> tuple[float, ...]:
    """Send each request to both endpoints, and return the medians of the last nine
    tenths in milliseconds.
    """
    request = encode_request({"readings": np.zeros((1, 8), np.float32)})
    seconds: dict[str, list[float]] = {name: [] for name in NAMES}
    for number in range(count):
        for name in list(NAMES)[:: 1 if number % 2 else -1]:
            seconds[name].append(
                invoke(connection, name, bytes(request.body), request.content_type)
            )
    return tuple(statistics.median(each[count // 10 :]) * 1000 for each in seconds.values())


def invoke(
    connection: http.client.HTTPConnection, name: str, body: bytes, content_type: str
) -> float:
    """Send one request and return how many seconds it took."""
    start = time.perf_counter()
    connection.request(
        "POST", f"/endpoints/{name}/invocations", body, {"Content-Type": content_type}
    )
    response = connection.getresponse()
    answer = response.read()
    if response.status != 200:
        sys.exit(f"{name}: answered {response.status} {answer[:200]!r}")
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
