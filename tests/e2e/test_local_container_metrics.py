"""Triton's own metrics, published by the real server through `local up`, without a network."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from local_assembly import adding_ensemble, write_files
from local_processes import folders, log_of, processes_with
from test_local_endpoints import Caller, eventually
from triton_server import needs_server

from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonEnsembleEndpoint,
    TritonEnvironment,
    TritonModelRepository,
)
from constructs_triton.cli import main
from constructs_triton_tools.local import LocalEndpoint

pytestmark = [pytest.mark.e2e, needs_server, pytest.mark.xdist_group("local_endpoints")]
NAME = "adding"
FAILS, RELOADS = -3.0, -70.0
REGISTERING = """    def initialize(self, args):
        self.families, self.metrics = [], []
        self.register("items_total", pb_utils.MetricFamily.COUNTER, "a}b", "c")
        self.register("items_hidden", pb_utils.MetricFamily.COUNTER, "a")
        self.register("items_waiting", pb_utils.MetricFamily.GAUGE, "a")

    def register(self, name, kind, *groups):
        family = pb_utils.MetricFamily(name=name, description="a test", kind=kind)
        self.families.append(family)  # the server removes a family whose object is deleted
        for group in groups:
            self.metrics.append(family.Metric(labels={"model": "first", "group": group}))

    def execute"""
COUNTING = """        *counted, waiting = self.metrics
        for metric in counted:
            metric.increment(1)
        waiting.set(7)
"""
RELOADING = """        if x.size and x[0] == -70:
            from tritonclient.grpc import InferenceServerClient
            server = InferenceServerClient("127.0.0.1:8001")
            server.unload_model("_metrics")
            server.load_model("_metrics")
        y = pb"""


def make_app(folder: Path, **props: Any) -> cdk.App:
    """An ensemble of two models, whose first one reloads the publisher when it is asked to."""
    files = adding_ensemble("pipe", 1, 10)
    code = files["first/1/model.py"].replace("        y = pb", COUNTING + RELOADING, 1)
    files["first/1/model.py"] = code.replace("    def execute", REGISTERING, 1)
    write_files(folder / "models", files)
    app = cdk.App(outdir=str(folder / "cdk.out"))
    stack = cdk.Stack(app, "Metrics")
    source = ModelSource.from_directory(folder / "models")
    TritonEnsembleEndpoint(
        stack,
        "Endpoint",
        endpoint_name=NAME,
        model_repository=TritonModelRepository(stack, "Models", source=source),
        ensemble="pipe",
        instance_type=InstanceType.of("ml.m5.xlarge"),
        environment=TritonEnvironment(allow_grpc=True, extra={"CONTAINER_METRICS_INTERVAL": "1"}),
        container_metrics=True,
        custom_metrics=["items_total", "items_waiting"],
        **props,
    )
    return app


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEndpoint]:
    """The endpoint, with network isolation where the machine has it."""
    app = make_app(tmp_path_factory.mktemp("metrics"), enable_network_isolation=True)
    with LocalEndpoint.from_app(app) as running:
        yield running


@pytest.fixture
def busy_port() -> Iterator[None]:
    """Triton's port of metrics, taken by another program."""
    with ExitStack() as stack:
        with suppress(OSError):  # it is taken already
            stack.enter_context(socket.create_server(("127.0.0.1", 8002)))
        yield


def lines_of(local: LocalEndpoint) -> list[dict[str, Any]]:
    """The lines of metrics in the server's log,
    each a JSON object with nothing before or after it.
    """
    return [json.loads(line) for line in log_of(local).read_text().splitlines() if '"_aws"' in line]


def totals(local: LocalEndpoint, name: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for line in lines_of(local):
        if "Model" in line:
            found[line["Model"]] += line[name]
    return found


def custom_lines(local: LocalEndpoint) -> list[dict[str, Any]]:
    """The lines of the metrics that a model writes itself."""
    return [line for line in lines_of(local) if "Model" not in line]


def send(local: LocalEndpoint, count: int) -> None:
    caller = Caller(local.endpoint_url)
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: caller.add(NAME, 1.0), range(count))) == {12.0}


def publisher_ids(local: LocalEndpoint) -> list[int]:
    return processes_with("_metrics/1/model.py", log_of(local).parent.name)


def test_figures_equal_the_requests_that_were_sent(local: LocalEndpoint) -> None:
    """Each model's requests under load are counted exactly, over a reload of the publisher."""
    before, read_before = totals(local, "Requests"), local.statistics()
    send(local, 400)
    Caller(local.endpoint_url).add(NAME, RELOADS)
    send(local, 200)
    wanted = {model: before[model] + 601 for model in ("pipe", "first", "second")}
    assert eventually(lambda: totals(local, "Requests") == wanted), totals(local, "Requests")
    assert set(totals(local, "Failures").values()) == {0}
    read = local.statistics(since=read_before)[NAME]["AllTraffic"]
    counted = {each.name: each.success.count for each in read if each.name in wanted}
    assert counted == dict.fromkeys(wanted, 601)
    assert all(
        each.queue.count == 601 and each.mean_compute_ms > 0 for each in read if each.name in wanted
    )
    assert totals(local, "Inferences")["second"] == totals(local, "Requests")["second"]
    assert 0 < totals(local, "Executions")["second"] <= totals(local, "Inferences")["second"]
    assert totals(local, "ComputeTime")["first"] > 0
    assert {(line["Endpoint"], line["Variant"]) for line in lines_of(local)} == {
        (NAME, "AllTraffic")
    }


def test_metrics_of_a_model_itself_are_published(local: LocalEndpoint) -> None:
    """A counter is its growth over all labels, a gauge has its value, and others are left out."""

    def counted() -> float:
        return sum(float(line["items_total"]) for line in custom_lines(local))

    before = counted()
    send(local, 30)
    assert eventually(lambda: counted() == before + 2 * 30), counted()
    line = custom_lines(local)[-1]
    assert line["items_waiting"] == [7]
    assert "items_hidden" not in line
    (rule,) = line["_aws"]["CloudWatchMetrics"]
    assert rule["Dimensions"] == [["Endpoint", "Variant"]]
    assert {each["Unit"] for each in rule["Metrics"]} == {"None"}


def test_a_failed_request_is_counted_at_the_step_that_failed(local: LocalEndpoint) -> None:
    """A step that raises has a failure, the step after it has none."""
    before = totals(local, "Failures")
    Caller(local.endpoint_url).refusal(NAME, FAILS)
    assert eventually(lambda: totals(local, "Failures")["first"] == before["first"] + 1)
    assert totals(local, "Failures")["second"] == before["second"]
    assert totals(local, "Failures")["pipe"] > before["pipe"]


def test_the_endpoint_answers_when_the_publisher_is_killed(local: LocalEndpoint) -> None:
    """Without its process the publisher prints nothing more,
    and requests are answered as before.
    """
    (process,) = publisher_ids(local)
    os.kill(process, signal.SIGKILL)
    assert eventually(lambda: not publisher_ids(local))
    printed = len(lines_of(local))
    send(local, 50)
    time.sleep(3)  # three intervals
    assert len(lines_of(local)) == printed


@pytest.mark.usefixtures("busy_port")
def test_another_program_may_have_the_port_of_metrics(tmp_path: Path) -> None:
    """The server's metrics are at a Unix socket in a private folder,
    so no port is opened or needed.
    """
    with LocalEndpoint.from_app(make_app(tmp_path)) as running:
        send(running, 50)
        assert eventually(lambda: totals(running, "Requests")["pipe"] == 50)
        (folder,) = folders(running)
        assert (folder / "metrics.sock").is_socket()
        assert folder.stat().st_mode & 0o077 == 0
        assert "port 8002 is in use" not in running.messages


def test_local_status_shows_the_figures_of_each_step(
    local: LocalEndpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table and the JSON have the requests, queue,
    compute and batches that the servers counted.
    """
    send(local, 20)
    command = ["local", "status", "--endpoint-url", local.endpoint_url]
    assert main([*command, "--json"]) == 0
    models = {
        each["name"]: each for each in json.loads(capsys.readouterr().out)[NAME]["AllTraffic"]
    }
    counted = models["first"]["inference_stats"]["success"]["count"]
    assert counted >= 20
    assert main(command) == 0
    title, *rows = capsys.readouterr().out.strip().splitlines()
    assert title == f"{NAME}/AllTraffic"
    assert [row.split()[0] for row in rows] == ["model", "first", "pipe", "second"]
    (first,) = (row.split() for row in rows if row.startswith("first "))
    assert int(first[1]) == counted
    assert all(float(each) > 0 for each in first[3:])
    assert main([*command, "--seconds", "1"]) == 0
    (first,) = (
        row.split() for row in capsys.readouterr().out.splitlines() if row.startswith("first ")
    )
    assert first[1:] == ["0", "0", "0.00", "0.00", "-"]
