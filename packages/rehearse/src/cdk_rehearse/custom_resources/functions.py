"""Runs Lambda functions: the uploaded code, in a separate process, with the role's credentials."""

from __future__ import annotations

import atexit
import io
import os
import pickle
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

from botocore.exceptions import ClientError

from constructs_triton_core.processes.children import foreign_environment
from constructs_triton_core.untrusted.drafts import temporary_folder

from ..construct_libraries import library_handler
from ..errors import StackError
from ..function_process import Invocation
from ..moto_account import functions as lambda_functions
from ..moto_account.differences import Replacement
from ..permissions.access import Access, RoleCredentials
from ..services.service_api import ServiceApi, client
from .fork_server import ForkServer


@dataclass
class Answers:
    """Responses by token; ``base_url`` receives them."""

    functions_are_idle: Callable[[], bool]
    base_url: str = ""
    _received: dict[str, dict[str, Any] | None] = field(default_factory=dict)
    _taken: set[str] = field(default_factory=set)

    def expect(self) -> str:
        """Create a token for one response."""
        token = uuid4().hex
        self._received[token] = None
        return token

    def url(self, token: str) -> str:
        return f"{self.base_url}/answers/{token}"

    def receive(self, token: str, answer: dict[str, Any]) -> bool:
        """Store a response; returns False if its token is unknown. A second response is ignored."""
        if token in self._taken:
            return True
        if token not in self._received:
            return False
        self._received[token] = answer
        return True

    def take(self, token: str) -> dict[str, Any] | None:
        """Take the response; ``None`` if it has not arrived."""
        answer = self._received[token]
        if answer is not None:
            del self._received[token]
            self._taken.add(token)
        return answer


# One server forks all functions, since starting Python and importing boto3 is slow.
_SERVER = ForkServer("cdk_rehearse.function_process:run")
_MIB = 2**20
# The system reserves addresses for each thread, and more than a function uses.
_THREADS_BYTES = 2**31


@dataclass
class Functions:
    """Runs functions that CloudFormation, a function or a client invokes."""

    api: ServiceApi
    access: Access
    invocations: list[str] = field(default_factory=list)
    """Names of the functions that were invoked, in order."""
    _logs: dict[str, Any] = field(default_factory=dict)
    _running: int = 0
    _idle: threading.Condition = field(default_factory=threading.Condition)

    def patches(self) -> list[Replacement]:
        """Run the code of functions while the simulated account runs."""
        return [lambda_functions.invoked_by(self._start, self._invoke)]

    def are_idle(self) -> bool:
        """Whether no invocation is running."""
        with self._idle:
            return self._running == 0

    def wait(self) -> None:
        """Wait until no invocation is running; one may continue after its response."""
        with self._idle:
            self._idle.wait_for(lambda: self._running == 0)

    def forget_clients(self) -> None:
        """Forget the connections to the server, which is another one in a copy of the process."""
        self._logs.clear()

    def _start(self, function: Any, event: Any) -> None:
        """Invoke a function without waiting for it."""
        self._note(function)
        threading.Thread(target=self._run, args=(function, event), daemon=True).start()

    def _invoke(self, function: Any, event: Any) -> tuple[str, bool]:
        """Invoke a function; return its result and whether it failed."""
        self._note(function)
        return self._run(function, event)

    def _note(self, function: Any) -> None:
        with self._idle:
            self._running += 1
            self.invocations.append(function.function_name)

    def _run(self, function: Any, event: Any) -> tuple[str, bool]:
        try:
            return self._run_process(function, event)
        finally:
            with self._idle:
                self._running -= 1
                self._idle.notify_all()

    def _run_process(self, function: Any, event: Any) -> tuple[str, bool]:
        """Run a function in a process; return its output, and whether it timed out."""
        credentials = self.access.assume(function.role, service="lambda.amazonaws.com", context={})
        environment = self._environment(function) | credentials.as_environment()
        with tempfile.NamedTemporaryFile(prefix="simulated-function-", mode="r") as log:
            invocation = Invocation(
                str(_unpacked(function.code_bytes)), environment, event, log.name
            )
            memory = int(function.memory_size) * _MIB + _THREADS_BYTES
            seconds = int(function.timeout)
            result = _SERVER.call(pickle.dumps(invocation), seconds=seconds, memory_bytes=memory)
            self._write_logs(function, log.read(), credentials)
        return (result or b"").decode(), result is None

    def _environment(self, function: Any) -> dict[str, str]:
        """Return the environment variables of a function, as Lambda sets them."""
        if not str(function.run_time).startswith("python"):
            raise StackError(
                f"only Python is supported, {function.function_name} is {function.run_time}"
            )
        handler, given = self._runnable(function)
        return {
            **given,
            **foreign_environment(),
            "AWS_ENDPOINT_URL": self.api.endpoint_url,
            "AWS_REGION": self.api.region,
            "AWS_DEFAULT_REGION": self.api.region,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_LAMBDA_FUNCTION_NAME": function.function_name,
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory_size),
            "SIMULATED_FUNCTION_ARN": function.function_arn,
            "SIMULATED_FUNCTION_TIMEOUT": str(function.timeout),
            "SIMULATED_DAYS_PASSED": str(self.api.behaviour.days_passed),
            "_HANDLER": handler,
        }

    def _runnable(self, function: Any) -> tuple[str, dict[str, str]]:
        """The handler of a function, and the variables of its template that it gets.

        The functions of this library read none. Other functions do not get the names of Lambda's
        own.
        """
        handler = library_handler(function.code_bytes)
        if handler is not None:
            return handler, {}
        if not self.api.runs_all_functions:
            raise StackError(
                f"{function.function_name} is not a function of this library, and does not run"
            )

        variables = {}
        for name, value in function.environment_vars.items():
            if not name.startswith("AWS_"):
                variables[name] = value
        return function.handler, variables

    def _write_logs(self, function: Any, text: str, credentials: RoleCredentials) -> None:
        """Write logs with the function's role, as Lambda does;
        without permission there is no log.
        """
        logs = self._logs_client(credentials)
        place = {"logGroupName": function.logs_group_name, "logStreamName": f"run/{uuid4().hex}"}
        events = [{"timestamp": _now(), "message": line} for line in text.splitlines() if line]
        try:
            logs.create_log_stream(**place)
            logs.put_log_events(
                **place, logEvents=events or [{"timestamp": _now(), "message": "END"}]
            )
        except ClientError:
            return

    def _logs_client(self, credentials: RoleCredentials) -> Any:
        if credentials.role_arn not in self._logs:
            place = (self.api.endpoint_url, self.api.region)
            self._logs[credentials.role_arn] = client("logs", *place, credentials.as_arguments())
        return self._logs[credentials.role_arn]


@cache
def _unpacked(code: bytes) -> Path:
    """The folder of a function's code, in which Python keeps the compiled
    modules for the next call.
    """
    until_the_end = ExitStack()
    folder = until_the_end.enter_context(temporary_folder())
    atexit.register(until_the_end.close)
    zipfile.ZipFile(io.BytesIO(code)).extractall(folder)
    return folder


def _now() -> int:
    return int(time.time() * 1000)
