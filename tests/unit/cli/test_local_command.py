"""``constructs-triton local up``: arguments that cannot be right."""

from __future__ import annotations

import re

import pytest

from constructs_triton.cli import main


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--port=99999", "--port: must be a port from 1 to 65535, or 0 .* got '99999'"),
        ("--port=-1", "--port: must be a port"),
        ("--memory-limit=0", "--memory-limit: must be a whole number of MiB above 0, got '0'"),
        ("--memory-limit=-3", "--memory-limit: must be"),
        ("--startup-timeout=-1", "--startup-timeout: must be a number of seconds above 0, got '-1'"),
        ("--invocation-timeout=0", "--invocation-timeout: must be a number of seconds"),
        ("--invocation-timeout=nan", "--invocation-timeout: must be a number of seconds"),
    ],
)
def test_numbers_out_of_range_are_refused_before_anything_is_read(
    option: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wrong usage, exit code 2, with the range and the value."""
    with pytest.raises(SystemExit) as ended:
        main(["local", "up", option])
    assert ended.value.code == 2
    assert re.search(words, capsys.readouterr().err)
