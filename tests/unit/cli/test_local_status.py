"""``local status`` without a local run; with one,
tests/e2e/test_local_container_metrics.py has it.
"""

from __future__ import annotations

import pytest

from constructs_triton.cli import main


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "127.0.0.1:8080", "http://127.0.0.1:x"])
def test_address_without_a_run_is_an_error(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The message names where the address comes from."""
    assert main(["local", "status", "--endpoint-url", url]) == 2
    message = f"error: {url}: no local run answers"
    assert capsys.readouterr().err.startswith(message)
