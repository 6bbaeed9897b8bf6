"""What all packages need: errors, findings, bounded reads, child processes, commands, templates."""

import sys
from importlib.machinery import PathFinder

__all__ = ["OWN_PACKAGES", "__version__", "same_version"]
__version__ = "0.1.0.dev0"

OWN_PACKAGES = (
    "constructs_triton_core",
    "triton_model_check",
    "constructs_triton_functions",
    "constructs_triton_client",
    "cdk_rehearse",
    "constructs_triton_tools",
    "constructs_triton",
)
"""The packages of this project, each after those that it may import."""
_WITHOUT_WHEEL = ("constructs_triton_functions", "constructs_triton_tools")
_PROGRAMS = (
    "/constructs-triton",
    "/triton-model-check",
    "-m",
    "cli/__main__.py",
    "check/__main__.py",
)


def same_version(distribution: str, version: str) -> str:
    """Return the version of a distribution of this project, which must be that of this package.

    Raises:
        ImportError: it is another one. A program ends with the same sentence, without a traceback.
    """
    if version != __version__:
        found = [
            name
            for name in OWN_PACKAGES
            if name not in _WITHOUT_WHEEL and PathFinder.find_spec(name)
        ]
        message = (
            f"{distribution} {version}: needs constructs-triton-core {version}, got {__version__}; "
            f"run `pip install -U {' '.join(found).replace('_', '-')}`"
        )
        if not sys.argv[0].endswith(_PROGRAMS):
            raise ImportError(message)
        sys.stderr.write(f"error: {message}\n")
        raise SystemExit(2)
    return version
