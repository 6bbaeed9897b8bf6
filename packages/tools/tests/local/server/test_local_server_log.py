"""Which lines of a server's log explain why it did not start."""

from __future__ import annotations

from constructs_triton_tools.local.server.server_log import (
    error_excerpt,
    explain_failure,
    last_lines,
    stub_failure,
)

CUDA = 'E1121 19:56:05.254082 29839 server.cc:241] "CudaDriverHelper has not been initialized."'
NVML = "E1121 19:56:05.254082 29839 metrics.cc:200] NVML: Driver Not Loaded"
LOAD = (
    "E1121 19:56:05.311077 29839 model_lifecycle.cc:642] "
    "failed to load 'm' version 1: no module 'x'"
)
TABLE = "| m | 1       | UNAVAILABLE: Internal: no module 'x' |"
SUMMARY = "error: creating server: Invalid argument - load failed for model 'm': no module 'x'"
OTHER = 'I1121 19:56:05.254082 29839 server.cc:300] "Waiting for in-flight requests to complete."'


def test_the_cause_comes_first_and_a_missing_gpu_last() -> None:
    """The server's summary, the error, the table, then what only a server without a GPU writes."""
    log = "\n".join([NVML, CUDA, OTHER, LOAD, LOAD, TABLE, SUMMARY])
    assert error_excerpt(log).splitlines() == [f"  {line}" for line in (SUMMARY, LOAD, TABLE, NVML)]


def test_a_missing_package_is_installed_on_this_machine_or_into_the_image() -> None:
    """The catalogue has the fix in AWS; the Python on this machine is another one."""
    log = "E1121 load failed: ModuleNotFoundError: No module named 'torch.nn'"
    assert "\non this machine: install torch into the Python that runs" in explain_failure(log)
    assert "on this machine" not in explain_failure(log, in_container=True)
    assert "on this machine" not in explain_failure("E1121 load failed")


def test_a_log_without_an_error_shows_its_end() -> None:
    """The last lines are the best explanation there is; an empty log gives none."""
    log = "\n\n".join(str(number) for number in range(20))
    assert error_excerpt(log, lines=3) == "  17\n  18\n  19"
    assert error_excerpt("") == ""


def test_the_end_of_a_log_keeps_its_order_and_its_indentation() -> None:
    """A server that ends by a signal writes its stack last, the innermost call first."""
    log = f"{SUMMARY}\n{OTHER}\nSignal (6) received.\n 0# 0x000055 in tritonserver\n\n"
    assert last_lines(log, lines=2) == "  Signal (6) received.\n   0# 0x000055 in tritonserver"


def test_more_errors_than_fit_keep_the_first() -> None:
    """The cause is among the first errors, not among those that follow from it."""
    log = "\n".join([CUDA, *(f"E1121 number {number}" for number in range(9))])
    assert error_excerpt(log, lines=2) == "  E1121 number 0\n  E1121 number 1"


def test_a_stub_that_cannot_start_is_found() -> None:
    """The dynamic loader's line is returned without blanks around it."""
    message = "stub: error while loading shared libraries: libpython3.11.so.1.0: cannot open"
    assert stub_failure(f"{OTHER}\n {message}\n") == message
    assert stub_failure(OTHER) is None


def test_excerpt_leaves_out_what_is_written_although_nothing_failed() -> None:
    """On a machine without a GPU, each start has such a line."""
    assert error_excerpt(f"{CUDA}\n{LOAD}").splitlines() == [f"  {LOAD}"]
