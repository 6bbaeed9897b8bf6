"""Text of Python models in UTF-8.

The bundled stub isolates Python (pybind11's ``PyConfig_InitIsolatedConfig``): it ignores the locale
and variables such as ``PYTHONIOENCODING``, so that text is ASCII. Since 24.11 the stub of the
images uses ``PyConfig_InitPythonConfig``, which takes UTF-8 where there is no locale.

This module is copied into the folder of the Python backend, so it imports nothing of ours.
"""

import locale
import sys
from contextlib import suppress
from io import TextIOWrapper


def use_utf8() -> None:
    """Let ``print`` and ``open`` use UTF-8. Names of files stay as Python has decoded them."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="surrogateescape")
    with suppress(locale.Error):
        locale.setlocale(locale.LC_CTYPE, "C.UTF-8")
