"""Runs in the process of a Lambda function: imports the handler, calls it and sends back its
result.

This module imports nothing of the simulated account, and a function has no access to it. The server
that forks these processes imports this module once, and with it boto3 and its service descriptions,
which take longer than any handler.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import pickle
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import botocore.session

_PAUSED_SHARE = 0.01
_SERVICES = ("application-autoscaling", "cloudformation", "lambda", "s3", "sagemaker", "ssm")


def _session() -> botocore.session.Session:
    """A session that knows the services; it reads the environment variables
    only when it is used.
    """
    first = botocore.session.Session()
    session = botocore.session.Session()
    for service in _SERVICES:
        first.create_client(
            service,
            region_name="us-east-1",
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
        )
    session.register_component("data_loader", first.get_component("data_loader"))
    return session


_SESSION = _session()


@dataclass(frozen=True)
class Invocation:
    """One call of a function: the folder of its code, its environment variables,
    and its log file.
    """

    directory: str
    environment: dict[str, str]
    event: Any
    log: str


class Context:
    """The context object that Lambda passes with the event."""

    aws_request_id = log_group_name = log_stream_name = "simulated"

    def __init__(self) -> None:
        self.function_name = os.environ["AWS_LAMBDA_FUNCTION_NAME"]
        self.invoked_function_arn = os.environ["SIMULATED_FUNCTION_ARN"]
        self.memory_limit_in_mb = os.environ["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"]
        self._deadline = time.monotonic() + int(os.environ["SIMULATED_FUNCTION_TIMEOUT"])

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until the function's timeout."""
        return int((self._deadline - time.monotonic()) * 1000)


def run(request: bytes) -> bytes:
    """Return the handler's result as JSON.

    What it prints is in the log, also the traceback of its error.
    """
    invocation: Invocation = pickle.loads(request)
    _become(invocation)
    module, name = os.environ["_HANDLER"].rsplit(".", 1)
    handler = getattr(importlib.import_module(module.replace("/", ".")), name)
    answer = json.dumps(handler(invocation.event, Context()))
    sys.stdout.flush()
    return answer.encode()


def _become(invocation: Invocation) -> None:
    """Turn this process into the environment of a function of Lambda."""
    with Path(invocation.log).open("wb") as log:
        os.dup2(log.fileno(), sys.stdout.fileno())
        os.dup2(log.fileno(), sys.stderr.fileno())
    os.environ.clear()
    os.environ.update(invocation.environment)
    os.chdir(invocation.directory)
    sys.path.insert(0, invocation.directory)
    boto3.setup_default_session(botocore_session=_SESSION)
    _skip_pauses()
    now = time.time
    days = int(os.environ["SIMULATED_DAYS_PASSED"])
    time.time = lambda: now() + days * 86400  # requests are signed with the present time
    logging.basicConfig(stream=sys.stderr)  # as Lambda sets up the root logger


def _skip_pauses() -> None:
    """Shorten pauses between attempts; the clock that measures them runs
    ahead by what was skipped.
    """
    sleep, monotonic, skipped = time.sleep, time.monotonic, [0.0]

    def pause(seconds: Any) -> None:
        skipped[0] += seconds * (1 - _PAUSED_SHARE)
        sleep(seconds * _PAUSED_SHARE)

    time.sleep = pause
    time.monotonic = lambda: monotonic() + skipped[0]
