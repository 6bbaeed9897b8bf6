"""Measures an endpoint with an open loop of requests, and writes the CSV file that ``planning`` reads.

Requests are due at their own times, whether the endpoint answers or not, and each latency counts **from when
its request was due**. A test whose users wait for each answer (a closed loop) sends less to a slow endpoint,
and does not see the requests that were never sent. Needs the extra ``load``.
"""

from constructs_triton.measuring.load_test.prepared_requests import PreparedRequest, prepare
from constructs_triton.measuring.load_test.results_file import Label, write_results
from constructs_triton.measuring.load_test.search import Search
from constructs_triton.measuring.load_test.step import Limits, StepResult, StepSettings, Verdict, evaluate
from constructs_triton.measuring.load_test.step_runner import StepRunner

__all__ = [
    "Label",
    "Limits",
    "PreparedRequest",
    "Search",
    "StepResult",
    "StepRunner",
    "StepSettings",
    "Verdict",
    "evaluate",
    "prepare",
    "write_results",
]
