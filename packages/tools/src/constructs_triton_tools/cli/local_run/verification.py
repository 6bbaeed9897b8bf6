"""``constructs-triton local up --verify``: send recorded requests to a
local endpoint, then stop.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import boto3

from constructs_triton_client.recorded_requests import RecordedRequests
from constructs_triton_client.transports.model_names import ModelNames
from constructs_triton_client.transports.sagemaker_transport import SageMakerTransport
from constructs_triton_core.errors import ConstructsTritonError, InvalidValueError
from constructs_triton_core.program.exit_codes import EXIT_NOT_DONE, exit_code_of
from constructs_triton_core.untrusted.terminal import print_error, print_lines
from constructs_triton_tools.cli.verify import code_of_results, result_lines
from constructs_triton_tools.operations.verification import verify_requests

if TYPE_CHECKING:
    from constructs_triton_tools.local.gateway.running_endpoint import RunningEndpoint
    from constructs_triton_tools.local.sources.specs import EndpointSpec

#: How long a component that starts at zero copies may take to wake.
_WAKE_TIMEOUT_SECONDS = 60.0


class LocalVerification:
    """Verifies the only endpoint of a run.

    ``exit_code`` is that of ``constructs-triton verify``.
    """

    def __init__(self, file: Path, *, concurrency: int = 1) -> None:
        self._recorded = RecordedRequests.from_file(file)
        self._concurrency = concurrency
        self.exit_code = EXIT_NOT_DONE  # until the requests were sent

    def begin(self, url: str, endpoints: Sequence[RunningEndpoint]) -> None:
        """Send the requests from another thread, and end the run with SIGTERM."""
        thread = threading.Thread(target=self._verify_and_stop, args=(url, endpoints), daemon=True)
        thread.start()

    def _verify_and_stop(self, url: str, endpoints: Sequence[RunningEndpoint]) -> None:
        try:
            self._verify(url, endpoints)
        except ConstructsTritonError as error:
            print_error(error)
            self.exit_code = exit_code_of(error)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    def _verify(self, url: str, endpoints: Sequence[RunningEndpoint]) -> None:
        if len(endpoints) != 1:
            names = ", ".join(endpoint.spec.name for endpoint in endpoints)
            raise InvalidValueError(
                f"--verify: needs one endpoint, got {names}; choose one with --endpoint"
            )
        spec = endpoints[0].spec
        session = boto3.Session("local", "local", region_name=spec.region)
        transport = SageMakerTransport(spec.name, session=session, endpoint_url=url)
        results = verify_requests(
            self._recorded,
            transport,
            target_model_of=ModelNames(transport).archive_of,
            inference_component=_only_component(spec, url),
            wake_timeout=_WAKE_TIMEOUT_SECONDS,
            concurrency=self._concurrency,
        )
        print_lines(*result_lines(results))
        self.exit_code = code_of_results(results)


def _only_component(spec: EndpointSpec, url: str) -> str | None:
    names = [component.name for component in spec.components]
    if len(names) > 1:
        raise InvalidValueError(
            f"--verify: needs one inference component, got {', '.join(names)}; run without "
            f"--verify, and run `constructs-triton verify {spec.name} FILE --inference-component "
            f"NAME --endpoint-url {url}`"
        )
    return names[0] if names else None
