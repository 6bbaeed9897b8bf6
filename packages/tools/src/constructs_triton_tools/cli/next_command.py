"""Names the next command.

``check`` uses this alone, so that it does not load what other commands need.
"""

from __future__ import annotations

from constructs_triton_core.untrusted.terminal import print_note


def recommend(command: str) -> None:
    """Print the command that most people need next, on standard error as all notes."""
    print_note(f"next: constructs-triton {command}")
