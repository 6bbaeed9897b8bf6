"""``rehearse --serve``: an account that ``cdk``, ``aws`` and boto3 connect to."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Mapping
from importlib.util import find_spec
from typing import NoReturn

from constructs_triton_core.untrusted.terminal import print_json, print_lines, print_note

_POLL_SECONDS = 0.5
_MODELS = "The account runs no models. To call a deployed endpoint, run `{}`."


def serve(*, as_json: bool, region: str | None, first_url: str | None = None) -> NoReturn:
    """Run an account on loopback, and print the environment variables that connect to it.

    Ctrl-C (SIGINT) ends it, and so do SIGTERM and SIGHUP with exit code 0. Requests for other
    Regions start an account there, unless ``first_url`` is that of an account that does so.
    """
    from cdk_rehearse.account import REGION, SimulatedAccount
    from cdk_rehearse.cli.other_regions import FirstRegion, OtherRegions

    # A shell that starts a program in the background lets it ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit())
    with SimulatedAccount(region=region or REGION) as account, OtherRegions() as others:
        others.first_url = account.endpoint_url
        others.first_region = account.api.region
        account.cloudformation.elsewhere = None if first_url else others.answer
        shared = FirstRegion(first_url, account.api.region) if first_url else others
        account.cloudformation.share_iam = shared.share_iam
        account.api.all_regions_url = first_url or account.endpoint_url
        local_up = f"constructs-triton local up --aws-endpoint-url {account.endpoint_url}"
        fix = f"run `{local_up}`, and call the address that it prints"
        account.runtime.refusal = f"the simulated account runs no models; {fix}"
        if as_json:
            print_json(account.variables(), indent=None)
        else:
            print_lines(*_shell_lines(account.variables()))
            print_note(
                f"A simulated AWS account is running, in {account.api.region}; a deployment to "
                "another Region starts one there. Paste these lines into another terminal, then "
                "run `npx cdk bootstrap` and `npx cdk deploy`.",
                *([_MODELS.format(local_up)] if find_spec("constructs_triton") else []),
                "Everything in the account is lost when you press Ctrl-C.",
            )
        noted: set[str] = set()
        try:
            while True:
                time.sleep(_POLL_SECONDS)
                _report(account.not_simulated, noted)
        finally:
            _report(account.not_simulated, noted)


def _shell_lines(variables: Mapping[str, str]) -> list[str]:
    """Lines for bash and zsh. No value contains a character that a shell changes."""
    return [
        "unset AWS_PROFILE AWS_DEFAULT_PROFILE AWS_SESSION_TOKEN",
        *(f"export {name}={value}" for name, value in variables.items()),
    ]


def _report(not_simulated: Mapping[str, list[str]], noted: set[str]) -> None:
    """Name what a deployment has used and the account does not simulate, once each."""
    for what, names in not_simulated.items():
        if new := [name for name in names if f"{what} {name}" not in noted]:
            print_note(f"not simulated: {what} {', '.join(new)}")
            noted.update(f"{what} {name}" for name in new)
