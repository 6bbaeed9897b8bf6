"""Prints Triton's own metrics as CloudWatch's embedded metric format, version 1.

One line for each model and interval, and one for the metrics that models write themselves. SageMaker sends
the container's output to CloudWatch Logs, which reads the metrics out of such lines. Runs in the container
with Python's standard library only. A change of this file changes the digest of every archive that contains
it.
"""

import http.client
import json
import math
import os
import re
import socket
import sys
import threading
import time

_SERIES = re.compile(r"^nv_(\w+)\{([^}]*)\} (\S+)$", re.MULTILINE)
_MODEL = re.compile(r'\bmodel="([^"]*)"')
# Families of the models themselves. A label may contain any character.
_CUSTOM = re.compile(r"^([a-zA-Z_]\w*)(\{.*\})? (\S+)$", re.MULTILINE)
_TYPE = re.compile(r"^# TYPE (\w+) (\w+)$", re.MULTILINE)
_MOST_VALUES = 100  # of a metric in a line
# Triton's counters; the times are totals, so that a quotient of sums is right over all instances.
_COUNTERS = {
    "inference_request_success": ("Requests", "Count"),
    "inference_request_failure": ("Failures", "Count"),
    "inference_count": ("Inferences", "Count"),
    "inference_exec_count": ("Executions", "Count"),
    "inference_queue_duration_us": ("QueueTime", "Microseconds"),
    "inference_compute_infer_duration_us": ("ComputeTime", "Microseconds"),
    "cache_num_hits_per_model": ("CacheHits", "Count"),
    "cache_num_misses_per_model": ("CacheMisses", "Count"),
}
_PENDING = "inference_pending_request_count"
_UNITS = {**dict(_COUNTERS.values()), "Pending": "Count"}
_PENDING_SAMPLES = 12


class TritonPythonModel:
    """A model that takes no requests. Its thread reads the server's metrics and prints."""

    def initialize(self, args):
        # An error here would end the server, because the server loads this model at its start.
        env = os.environ.get
        self.own_name = args["model_name"]
        self.dimensions = {
            "Endpoint": env("CONTAINER_METRICS_ENDPOINT") or "unknown",
            "Variant": env("CONTAINER_METRICS_VARIANT") or "unknown",
        }
        # A Unix socket on your machine, and a port in SageMaker's container.
        self.address = env("CONTAINER_METRICS_SOCKET") or env("SAGEMAKER_TRITON_METRICS_PORT") or "8002"
        self.interval = _seconds(env("CONTAINER_METRICS_INTERVAL"))
        self.custom = set(filter(None, (env("CONTAINER_METRICS_CUSTOM") or "").split(",")))
        self.gauges = set()
        # The port opens after the models are loaded, so at the start of the server all counters are zero.
        # If this model is loaded again later, it counts from now.
        self.error = self.reported = None
        counters, custom, _ = self.read()
        self.before = {**counters, **custom}
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def execute(self, requests):
        """Refuse every request."""
        import triton_python_backend_utils as pb_utils

        refusal = pb_utils.TritonError(f"{self.own_name}: publishes metrics and takes no requests")
        return [pb_utils.InferenceResponse(error=refusal) for _ in requests]

    def finalize(self):
        """Print what has been counted since the last line."""
        self.stopped.set()
        self.thread.join(5)

    def run(self):
        """Print a line of each model after each interval, until the model is unloaded."""
        samples, due, is_last = {}, time.monotonic() + self.interval, False
        while not is_last:
            is_last = self.stopped.wait(self.interval / _PENDING_SAMPLES)
            counters, custom, pending = self.read()
            for model, value in pending.items():
                samples.setdefault(model, []).append(value)
            if is_last or time.monotonic() >= due:
                due = time.monotonic() + self.interval
                if counters:
                    self.publish(counters, samples)
                    self.publish_custom(custom)
                    self.before, samples = {**counters, **custom}, {}
                self.report()

    def read(self):
        """Return the counters by model, name and labels, those of the models themselves by name and labels,
        and the pending requests by model.
        """
        counters, custom, pending = {}, {}, {}
        try:
            page = _page(self.address)
            custom = self.read_custom(page)
            for name, labels, value in _SERIES.findall(page):
                found = _MODEL.search(labels)
                if found is None or found[1] == self.own_name:
                    continue
                if name in _COUNTERS:
                    counters[found[1], name, labels] = float(value)
                elif name == _PENDING:
                    pending[found[1]] = pending.get(found[1], 0) + int(float(value))
        except Exception as error:  # whatever it is, the server must go on
            self.error = str(error)
            return {}, {}, {}
        self.error = None
        return counters, custom, pending

    def read_custom(self, page):
        """Return the values of the models' own metrics by name and labels."""
        if not self.custom:
            return {}
        self.gauges = {name for name, kind in _TYPE.findall(page) if kind == "gauge"}
        found = _CUSTOM.findall(page)
        values = {(name, labels): float(value) for name, labels, value in found if name in self.custom}
        return {key: value for key, value in values.items() if math.isfinite(value)}

    def report(self):
        """Print the error that keeps metrics from being published, once."""
        if self.error is not None and self.error != self.reported:
            self.reported = self.error
            sys.stderr.write(f"{self.own_name}: cannot publish metrics of {self.address}: {self.error}\n")
            sys.stderr.flush()

    def publish(self, counters, samples):
        """Print the difference of each counter since the last line."""
        totals = {model: {"Requests": 0, "Failures": 0} for model, _, _ in counters}
        for (model, name, labels), value in counters.items():
            change = self.growth((model, name, labels), value)
            metric = _COUNTERS[name][0]
            totals[model][metric] = totals[model].get(metric, 0) + round(change)
        for model, values in totals.items():
            if model in samples:
                values["Pending"] = samples[model][-_MOST_VALUES:]
            self.print_line({**self.dimensions, "Model": model}, values)

    def publish_custom(self, custom):
        """Print the growth of each counter of the models themselves, and the values of each gauge."""
        totals = {}
        for (name, labels), value in custom.items():
            if name not in self.gauges:
                totals[name] = totals.get(name, 0) + self.growth((name, labels), value)
            elif len(totals.setdefault(name, [])) < _MOST_VALUES:
                totals[name].append(value)
        if totals:
            self.print_line(self.dimensions, totals)

    def growth(self, key, value):
        """Return how much a counter has grown since the last line."""
        before = self.before.get(key, 0)
        # A counter only grows, except that it starts again when its model is loaded again.
        return value - before if value >= before else value

    def print_line(self, dimensions, values):
        """Print one line with one system call, so that it does not mix with lines of the server."""
        metrics = [{"Name": name, "Unit": _UNITS.get(name, "None")} for name in values]
        rule = {"Namespace": "Triton", "Dimensions": [list(dimensions)], "Metrics": metrics}
        aws = {"Timestamp": int(time.time() * 1000), "CloudWatchMetrics": [rule]}
        try:
            os.write(1, (json.dumps({"_aws": aws, **dimensions, **values}) + "\n").encode())
        except OSError as error:
            self.error = str(error)


class _Connection(http.client.HTTPConnection):
    """A connection to the metrics of the server: to a port, or to a Unix socket."""

    def connect(self):
        if self.host.isdecimal():
            self.sock = socket.create_connection(("127.0.0.1", int(self.host)), self.timeout)
        else:
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(self.timeout)
            self.sock.connect(self.host)


def _page(address):
    connection = _Connection(address, timeout=2)
    try:
        connection.request("GET", "/metrics", headers={"Host": "localhost"})
        answer = connection.getresponse()
        if answer.status != http.HTTPStatus.OK:
            raise OSError(f"status {answer.status}")
        return answer.read().decode()
    finally:
        connection.close()


def _seconds(text):
    try:
        return max(1.0, float(text or 60))
    except ValueError:
        return 60.0
