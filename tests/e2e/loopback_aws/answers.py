"""The answers that functions put to the URL which CloudFormation gave them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

__all__ = ["Answers"]


@dataclass
class Answers:
    """Answers by token; ``base_url`` is where they arrive."""

    functions_are_idle: Callable[[], bool]
    base_url: str = ""
    _received: dict[str, dict[str, Any] | None] = field(default_factory=dict)

    def expect(self) -> str:
        """A token for one more answer."""
        token = uuid4().hex
        self._received[token] = None
        return token

    def url(self, token: str) -> str:
        return f"{self.base_url}/answers/{token}"

    def receive(self, token: str, answer: dict[str, Any]) -> bool:
        """Keep an answer; False where nobody waits for it."""
        if token not in self._received:
            return False
        self._received[token] = answer
        return True

    def take(self, token: str) -> dict[str, Any] | None:
        """The answer, once; ``None`` while there is none."""
        answer = self._received[token]
        if answer is not None:
            del self._received[token]
        return answer
