"""The model that publishes Triton's metrics, with a real port that serves
pages in Triton's format.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from constructs_triton.cdk.repository import metrics_publisher
from constructs_triton.cdk.repository.metrics_publisher import add_publisher
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository
from triton_model_check.model_repository.packing import fingerprint

MODEL = Path(metrics_publisher.__file__).parent / "_metrics" / "1" / "model.py"
ARGUMENTS = {"model_name": "_metrics"}


def page(requests: int, queue_us: int, *, pending: int | None = None) -> str:
    """What Triton's port answers for the model ``m`` beside the publisher itself."""
    labels = '{model="m",namespace="/opt/ml/model",version="1"}'
    own_labels = '{model="_metrics",namespace="/opt/ml/model",version="1"}'
    lines = [
        "# HELP nv_inference_request_success Number of successful requests",
        f"nv_inference_request_success{labels} {requests}",
        f"nv_inference_queue_duration_us{labels} {queue_us}",
        f"nv_inference_request_success{own_labels} 7",
        "nv_cpu_utilization 0.5",
    ]
    if pending is not None:
        lines.append(f"nv_inference_pending_request_count{labels} {pending}")
    return "\n".join(lines) + "\n"


class Port:
    """The metrics port of a server; ``page`` is what it answers."""

    def __init__(self) -> None:
        self.page = ""
        self.reads = 0
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(owner.page.encode())
                owner.reads += 1

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def show(self, text: str) -> None:
        """Answer ``text`` from now on, and wait until it has been read."""
        self.page = text
        # The read that runs now may still get the page of before.
        wanted = self.reads + 2
        deadline = time.monotonic() + 30
        while self.reads < wanted and time.monotonic() < deadline:
            time.sleep(0.02)
        assert self.reads >= wanted


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[Port]:
    """The metrics port of a server whose container publishes each second."""
    port = Port()
    monkeypatch.setenv("SAGEMAKER_TRITON_METRICS_PORT", str(port.server.server_port))
    monkeypatch.setenv("CONTAINER_METRICS_ENDPOINT", "shop")
    monkeypatch.setenv("CONTAINER_METRICS_VARIANT", "Blue")
    monkeypatch.setenv("CONTAINER_METRICS_INTERVAL", "1")
    yield port
    port.server.shutdown()
    port.server.server_close()


def make_model() -> Any:
    """The publisher, as Triton's Python backend creates it."""
    spec = importlib.util.spec_from_file_location("metrics_publisher", MODEL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.TritonPythonModel()


def publish(port: Port, text: str) -> Any:
    """Publish a page, and end the publisher."""
    model = make_model()
    model.initialize(ARGUMENTS)
    port.show(text)
    model.finalize()
    return model


def lines_of(capfd: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capfd.readouterr().out.splitlines()]


def test_a_line_is_the_format_that_cloudwatch_reads(
    port: Port, capfd: pytest.CaptureFixture[str]
) -> None:
    """A line declares each metric that it has, and the dimensions are its endpoint,
    variant and model.
    """
    publish(port, page(5, 1200, pending=3))
    lines = lines_of(capfd)
    assert {line["Model"] for line in lines} == {"m"}
    for line in lines:
        (rule,) = line["_aws"]["CloudWatchMetrics"]
        assert rule["Namespace"] == "Triton"
        assert rule["Dimensions"] == [["Endpoint", "Variant", "Model"]]
        metrics = {metric["Name"] for metric in rule["Metrics"]}
        assert metrics == set(line) - {"_aws", "Endpoint", "Variant", "Model"}
        assert (line["Endpoint"], line["Variant"]) == ("shop", "Blue")
        published = line["_aws"]["Timestamp"] / 1000
        assert abs(published - time.time()) < 120
    assert sum(line["Requests"] for line in lines) == 5
    assert sum(line["QueueTime"] for line in lines) == 1200
    assert set(lines[-1]["Pending"]) == {3}


def test_counters_become_differences_over_a_reload(
    port: Port, capfd: pytest.CaptureFixture[str]
) -> None:
    """A counter that is smaller than before belongs to a model that was loaded again,
    and counts from 0.
    """
    port.page = page(100, 9000)
    model = make_model()
    model.initialize(ARGUMENTS)  # loaded again while the server runs: it counts from now
    port.show(page(130, 9500))
    model.publish(model.read()[0], {})
    model.before = model.read()[0]

    port.show(page(4, 80))
    model.finalize()

    lines = lines_of(capfd)
    assert sum(line["Requests"] for line in lines) == 30 + 4
    assert sum(line["QueueTime"] for line in lines) == 500 + 80


def test_a_server_without_the_pending_metric_publishes_no_zero(
    port: Port, capfd: pytest.CaptureFixture[str]
) -> None:
    """Images before 23.09 do not count pending requests, and a zero would be wrong."""
    publish(port, page(1, 2))
    assert all("Pending" not in line for line in lines_of(capfd))


@pytest.mark.parametrize("interval", ["", "soon", "0.001", "60"])
def test_initialize_never_raises(
    interval: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A closed port and a broken interval do not stop the server,
    which loads this model at its start.
    """
    monkeypatch.setenv("SAGEMAKER_TRITON_METRICS_PORT", "1")
    monkeypatch.setenv("CONTAINER_METRICS_INTERVAL", interval)
    model = make_model()
    model.initialize(ARGUMENTS)
    model.finalize()
    printed = capfd.readouterr()
    assert printed.out == ""
    assert printed.err.count("cannot publish metrics") == 1


def test_a_broken_page_is_reported_once(port: Port, capfd: pytest.CaptureFixture[str]) -> None:
    """A value that is not a number is printed on stderr,
    and no metrics are published from the page.
    """
    publish(port, page(1, 2).replace(" 1\n", " one\n")).report()
    printed = capfd.readouterr()
    assert printed.out == ""
    assert printed.err.count("cannot publish metrics") == 1


def test_the_publisher_is_added_to_the_models_of_one_archive(tmp_path: Path) -> None:
    """The copy has the models of the archive and the publisher;
    its digest depends on the content alone.
    """
    digests = set()
    for place in ("one", "two"):
        for name in ("m", "step", "other"):
            folder = tmp_path / place / name
            (folder / "1").mkdir(parents=True)
            (folder / "config.pbtxt").write_text('backend: "python"\n')
            (folder / "1" / "model.py").write_text("class TritonPythonModel: pass\n")
        repository = ModelRepository.from_directory(tmp_path / place)

        copy = add_publisher(repository, ["m", "step"], tmp_path / f"{place}-copy")

        assert list(copy.models) == ["_metrics", "m", "step"]
        assert copy.closure("m") == ["_metrics", "m", "step"]
        findings = copy.check(Target(default_model="m")).findings
        assert not [finding for finding in findings if finding.path.startswith("_metrics")]
        digests.add(fingerprint(copy, copy.closure("m")))
    assert len(digests) == 1


def test_the_publisher_is_the_same_bytes_in_each_release() -> None:
    """A change of its files changes the archives of every endpoint that publishes: a deployment for
    each.

    If the change is wanted, write the new digest here and an entry into CHANGELOG.md.
    """
    files = [MODEL, MODEL.parents[1] / "config.pbtxt"]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    assert digest == "d0fc160723993e69ec2f223146f42e0cd163bb08781f6c154a8d0bd39120489f"
