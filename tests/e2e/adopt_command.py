"""Runs ``constructs-triton adopt`` on an account with one archive,
and refuses single calls of it.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

from botocore.exceptions import ClientError
from notebook_endpoints import BUCKET, prepare_account, write_archive
from synthesized_adoption import synthesize
from test_adopt_kinds import ARCHIVE, Notebook

from cdk_rehearse import SimulatedAccount
from constructs_triton.cli import main
from constructs_triton_core.aws_reader import reaching_aws
from constructs_triton_tools.operations.adopting.reading import RecordingReader

DEFAULT = {"Environment": {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "first"}}
KEY = ARCHIVE.removeprefix(f"s3://{BUCKET}/")


@contextmanager
def account_with_archive(folder: Path) -> Iterator[SimulatedAccount]:
    """An account with the archive of one model, which is in the folder too."""
    with SimulatedAccount() as account:
        prepare_account(account)
        archive = write_archive(folder / "model.tar.gz", {"first": 1})
        account.client("s3").upload_file(str(archive), BUCKET, KEY)
        yield account


def run(aws: SimulatedAccount, *words: str, switch: str = "import") -> tuple[int, str]:
    """Return the exit code of ``adopt`` and everything that it prints."""
    printed = io.StringIO()
    with (
        mock.patch.dict(os.environ, aws.environment()),
        redirect_stdout(printed),
        redirect_stderr(printed),
    ):
        code = main(["adopt", *words, "--switch", switch])
    return code, printed.getvalue()


def expect_app(
    aws: SimulatedAccount, folder: Path, *words: str, name: str = "notebook", switch: str = "import"
) -> Path:
    """Let ``adopt`` write an app, synthesize it, and return its folder;
    the assembly is beside it.
    """
    app = folder / f"app-{switch}"
    code, printed = run(aws, name, "-o", str(app), "--no-synth", *words, switch=switch)
    assert code == 0, printed
    synthesize(app, folder / f"assembly-{switch}")
    return app


def serve(aws: SimulatedAccount, container: dict[str, Any] | None = None, **variant: Any) -> None:
    """Make the endpoint of a notebook that serves one model."""
    Notebook(aws).model("first", container)
    Notebook(aws).endpoint(variant)


def refusing(operation: str, code: str, message: str = "") -> Any:
    """Read everything but the answer of one operation, which ends with an error of AWS."""
    original = RecordingReader.require
    name = "".join(word.title() for word in operation.split("_"))
    error = ClientError({"Error": {"Code": code, "Message": message}}, name)

    def require(reader: RecordingReader, service: str, wanted: str, **request: Any) -> Any:
        if wanted == operation:
            with reaching_aws(service):
                raise error
        return original(reader, service, wanted, **request)

    return mock.patch.object(RecordingReader, "require", require)
