"""Synthesizes many apps in one process, since starting the CDK takes longer than all of them.

``python synthesize_apps.py DIRECTORY APP...`` runs each ``app.py`` in its folder, as ``cdk synth`` would, and
writes ``DIRECTORY/<name of the folder>``; what an app prints and raises is seen.
"""

from __future__ import annotations

import functools
import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import aws_cdk as cdk


def run_app(app: Path, output: Path) -> None:
    """Run one app and forget the modules of its folder, since other apps have modules of the same names."""
    loaded = set(sys.modules)
    os.chdir(app.parent)
    # The environment variable for the folder is read by the CDK only once.
    into_output = functools.partial(cdk.App, outdir=str(output))
    with (
        mock.patch.object(cdk, "App", into_output),
        mock.patch.object(sys, "path", [str(app.parent), *sys.path]),
    ):
        runpy.run_path(str(app), run_name="__main__")
    for name in set(sys.modules) - loaded:
        file = getattr(sys.modules[name], "__file__", None)
        if file is not None and Path(file).parent == app.parent:
            del sys.modules[name]


def main(directory: Path, apps: Sequence[Path]) -> None:
    for app in apps:
        run_app(app, directory / app.parent.name)


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(each) for each in sys.argv[2:]])
