"""The environment variables of child processes.

There are two kinds of children. Those that work on foreign code or data get only the variables that a program
needs to run, and none of the caller's credentials. The user's own tools and servers get the user's variables.
"""

from __future__ import annotations

import os

__all__ = ["foreign_environment", "own_environment"]

_PASSED = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TEMP", "TMP", "XDG_CACHE_HOME"),
        *("LANG", "LANGUAGE", "TZ", "NO_COLOR"),
        *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT"),
    }
)
# Languages, the coverage of tests, and the settings of the CDK's bindings, such as which Node.js they start.
_PASSED_PREFIXES = ("LC_", "COVERAGE_PROCESS_", "JSII_")
# They are set for the Python that runs this program. A tool in Python may have another version.
_NOT_INHERITED = frozenset(
    {
        *("PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONINSPECT"),
        "PYTHONPLATLIBDIR",
        "__PYVENV_LAUNCHER__",
    }
)


def foreign_environment(**more: str) -> dict[str, str]:
    """Return the environment of a child that works on foreign code or data.

    Args:
        **more: Further variables.
    """
    passed = {
        name: value
        for name, value in os.environ.items()
        if name in _PASSED or name.startswith(_PASSED_PREFIXES)
    }
    return passed | more


def own_environment(**more: str) -> dict[str, str]:
    """Return the environment of a tool or server of the user, with proxies, certificates and indexes.

    Args:
        **more: Further variables.
    """
    return {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED} | more
