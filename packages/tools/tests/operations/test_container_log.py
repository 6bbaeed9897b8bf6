"""The lines of a container's log that can explain a failure."""

from __future__ import annotations

import pytest

from constructs_triton_tools.operations.container_log import can_explain, is_informational


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("+------------------+------+", False),
        ("| Repository Agent | Path |", False),
        ("| python  | /opt/tritonserver/backends/python/libtriton_python.so | {} |", False),
        ("| alpha | 1       | READY  |", False),
        (
            (
                "| alpha | 1       | UNAVAILABLE: Internal: ModuleNotFoundError: "
                "No module named 'torch' |"
            ),
            True,
        ),
        ("KeyError: 'a | b'", True),
    ],
)
def test_tables_of_every_start_explain_nothing(line: str, expected: bool) -> None:
    """Triton prints tables of backends, models and options;
    only an unavailable model is an error.
    """
    assert can_explain(line) == expected


def test_a_model_that_fails_to_initialize_is_no_information() -> None:
    """The Python backend writes why a model fails with the severity of information."""
    line = 'I1 01:02:03.4 9 pb_stub.cc:388] "Failed to initialize Python stub: ValueError: a'
    assert not is_informational(line.replace("I1 ", "I1121 "))
    assert is_informational("I1121 01:02:03.4 9 pb_stub.cc:388] started")
