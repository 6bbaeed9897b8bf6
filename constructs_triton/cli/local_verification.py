"""``constructs-triton local up --verify``: send recorded requests to a local endpoint, then stop."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from constructs_triton.cli.verify import format_results
from constructs_triton.client.recorded_requests import RecordedRequests
from constructs_triton.errors import ConstructsTritonError, InvalidValueError

if TYPE_CHECKING:
    from constructs_triton.local.gateway.running_endpoint import RunningEndpoint

_DIGEST = r"(-[0-9a-f]+)?\.tar\.gz"


class LocalVerification:
    """Verifies the only endpoint of a run. ``is_equal`` is whether all responses were equal."""

    def __init__(self, file: Path) -> None:
        self._recorded = RecordedRequests.from_file(file)
        self.is_equal = False

    def begin(self, url: str, endpoints: Sequence[RunningEndpoint]) -> None:
        """Send the requests from another thread, and end the run with SIGINT."""
        thread = threading.Thread(target=self._verify_and_stop, args=(url, endpoints), daemon=True)
        thread.start()

    def _verify_and_stop(self, url: str, endpoints: Sequence[RunningEndpoint]) -> None:
        try:
            self._verify(url, endpoints)
        except ConstructsTritonError as error:
            print(f"error: {error}", file=sys.stderr)
        finally:
            os.kill(os.getpid(), signal.SIGINT)

    def _verify(self, url: str, endpoints: Sequence[RunningEndpoint]) -> None:
        import boto3  # noqa: PLC0415 - the extra "local" has it

        from constructs_triton.client.sagemaker_transport import SageMakerTransport  # noqa: PLC0415
        from constructs_triton.operations.verification import verify_requests  # noqa: PLC0415

        if len(endpoints) != 1:
            names = ", ".join(endpoint.spec.name for endpoint in endpoints)
            raise InvalidValueError(f"--verify: needs one endpoint, got {names}; choose one with --endpoint")
        spec = endpoints[0].spec
        if spec.components:
            raise InvalidValueError(
                f"--verify: does not support inference components, got endpoint {spec.name}; remove "
                "--verify, and call the components by their names"
            )
        session = boto3.Session("local", "local", region_name=spec.region)
        transport = SageMakerTransport(spec.name, session=session, endpoint_url=url)
        archives = spec.variants[0].container.archives
        results = verify_requests(
            self._recorded, transport, target_model_of=lambda name: _archive_of(name, archives)
        )
        print(format_results(results), flush=True)
        self.is_equal = not any(each.differences for each in results)


def _archive_of(name: str, archives: Iterable[str]) -> str:
    """Return the archive of a model: its name, with or without a digest."""
    pattern = re.compile(re.escape(name) + _DIGEST)
    found = [each for each in archives if pattern.fullmatch(each)]
    return found[0] if len(found) == 1 else name
