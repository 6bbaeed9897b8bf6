"""What a real Triton server said when it was asked to load a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Loader", "Outcome", "ServerAnswer"]

Outcome = Literal["loads", "rejected", "unknown"]

Loader = Literal["backend", "stand-in", "empty-backend"]
"""What loaded the model: its own backend; a program in Python in the place of a backend that the
server does not have; or an empty library, with which only Triton's core looks at the model."""


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """A server's answer for one model.

    Args:
        model: Name of the model.
        outcome: Whether the model loads; ``"unknown"`` if the server gave no answer.
        reason: The server's message, or why there is no answer. Empty if the model loads.
        note: What was changed or replaced for this machine; may be empty.
        release: Triton release of the server, such as ``"24.10"``; ``None`` if it is not known.
        loader: What loaded the model.
        hint: How to fix what the message says; empty if the message is not known.
    """

    model: str
    outcome: Outcome
    reason: str = ""
    note: str = ""
    release: str | None = None
    loader: Loader = "backend"
    hint: str = ""

    @property
    def server(self) -> str:
        """The server in words, such as ``Triton 24.10``."""
        return f"Triton {self.release}" if self.release else "Triton"

    def __str__(self) -> str:
        text = f"{self.outcome}: {self.reason}" if self.reason else self.outcome
        return f"{text} ({self.note})" if self.note else text
