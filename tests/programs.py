"""Runs the project's apps, scripts and commands in the process of the tests.

Starting Python, the CDK's bindings and their Node.js process takes longer than most apps do.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from unittest import mock

import aws_cdk as cdk

from constructs_triton.cli import main

PROJECT = Path(__file__).resolve().parents[1]

RulePacks = Sequence[Callable[[cdk.App], Any]]


def run_script(script: Path, *arguments: object) -> CompletedProcess[str]:
    """Run a script as ``python script.py`` does in its folder."""
    command = [script.name, *map(str, arguments)]
    output, errors = StringIO(), StringIO()
    with redirect_stdout(output), redirect_stderr(errors), mock.patch.object(sys, "argv", command):
        code = _run(script)
    return CompletedProcess(command, code, output.getvalue(), errors.getvalue())


def run_command(*words: str, environment: Mapping[str, str]) -> str:
    """Return what ``constructs-triton`` prints with these environment variables;
    the command succeeds.
    """
    output = StringIO()
    with mock.patch.dict(os.environ, environment), redirect_stdout(output):
        assert main(words) == 0
    return output.getvalue()


def synthesize_app(
    app: Path,
    directory: Path,
    context: Mapping[str, str] | None = None,
    *,
    is_validated: bool = True,
    rule_packs: RulePacks = (),
) -> cdk.App:
    """Run an ``app.py`` as ``cdk synth`` does in its folder, and write its assembly to
    ``directory``.

    Unless ``is_validated`` is false, the CDK validates the template as ``cdk.json`` says, which
    takes five seconds in a process once. A finding of a rule pack is an error.
    """
    settings = app.with_name("cdk.json")
    settings = settings if settings.exists() else PROJECT / "cdk.json"
    values = {**json.loads(settings.read_text())["context"], **(context or {})}
    with (
        mock.patch.dict(os.environ, CDK_OUTDIR=str(directory)),
        _apps_in(directory, values, is_validated, rule_packs) as made,
    ):
        assert _run(app) == 0
    (result,) = made
    return result


@contextmanager
def _apps_in(
    directory: Path, context: Mapping[str, str], is_validated: bool, rule_packs: RulePacks
) -> Iterator[list[cdk.App]]:
    """Patch ``cdk.App`` to use these settings: the CDK reads its environment only
    when its process starts.
    """
    make: Callable[..., cdk.App] = cdk.App
    made: list[cdk.App] = []

    def make_app() -> cdk.App:
        app = make(
            outdir=str(directory), context=context, builtin_cloud_formation_validation=is_validated
        )
        cdk.Validations.of(app).add_plugins(*(pack(app) for pack in rule_packs))
        made.append(app)
        return app

    with mock.patch.object(cdk, "App", make_app):
        yield made


def _run(program: Path) -> int:
    """Run a program in its folder and forget the modules beside it:
    other folders have the same names.
    """
    loaded, folder = set(sys.modules), str(program.parent)
    with chdir(folder), mock.patch.object(sys, "path", [folder, *sys.path]):
        try:
            runpy.run_path(str(program), run_name="__main__")
        except SystemExit as end:
            return int(end.code or 0)
        finally:
            for name in sys.modules.keys() - loaded:
                file = getattr(sys.modules[name], "__file__", None)
                if file is not None and Path(file).parent.parent == program.parent.parent:
                    del sys.modules[name]
    return 0
