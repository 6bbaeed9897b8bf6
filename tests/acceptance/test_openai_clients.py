"""OpenAI's package reads the same text as `invoke --stream`,
from the URL that `--print-token` prints.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from chat_server import run_chat_server
from chat_streams import ANSWER
from environments import environment

from constructs_triton.cli import main
from constructs_triton_tools.measuring.generated_text import count_all_tokens

BUDGET_MINUTES = 1
CALLER = Path(__file__).with_name("openai_caller.py")


def test_openai_reads_the_same_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The key is a function, so that a program that runs for days can renew the token."""
    python = environment("openai", ["openai>=2"], tmp_path)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-key")
    with run_chat_server() as server:
        target = ["shared", "--endpoint-url", server.url, "--inference-component", "chat"]
        assert main(["invoke", *target, "--print-token", "--json"]) == 0
        printed = json.loads(capsys.readouterr().out)
        command = [str(python), str(CALLER), printed["base_url"], printed["api_key"]]
        answers = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        body = ["--body", '{"messages": [], "stream": true}']
        assert main(["invoke", *target, *body, "--stream", "--json"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    ours = "".join(
        each["delta"].get("content", "") for event in events for each in event["choices"]
    )
    assert answers == {"stream": ours, "tokens": count_all_tokens(events[-1]), "whole": ANSWER}
    path, headers, _ = server.received[0]
    assert path == "/endpoints/shared/inference-components/chat/openai/v1/chat/completions"
    assert {name.lower(): value for name, value in headers.items()}[
        "authorization"
    ] == f"Bearer {printed['api_key']}"
