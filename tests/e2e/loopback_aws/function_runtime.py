"""Run inside the function's process: imports the handler, hands it the event, prints what it returns."""

import importlib
import json
import logging
import os
import sys
import time

started = time.monotonic()


class Context:
    """What Lambda hands over beside the event."""

    aws_request_id = "loopback"
    function_name = os.environ["AWS_LAMBDA_FUNCTION_NAME"]
    invoked_function_arn = os.environ["LOOPBACK_FUNCTION_ARN"]
    memory_limit_in_mb = os.environ["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"]
    log_group_name = "loopback"
    log_stream_name = "loopback"

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until the function's time-out."""
        total = int(os.environ["LOOPBACK_FUNCTION_TIMEOUT"])
        return int((total - (time.monotonic() - started)) * 1000)


logging.basicConfig(stream=sys.stderr)  # as Lambda sets up the root logger
sys.path.insert(0, os.getcwd())  # noqa: PTH109 - nothing but the handler's own imports in this process
module, name = os.environ["_HANDLER"].rsplit(".", 1)
handler = getattr(importlib.import_module(module.replace("/", ".")), name)
sys.stdout.write(json.dumps(handler(json.load(sys.stdin), Context())))
