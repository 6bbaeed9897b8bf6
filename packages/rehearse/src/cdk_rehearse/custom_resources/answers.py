"""The responses that functions send to the URL in CloudFormation's request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4


@dataclass
class Answers:
    """Responses by token; ``base_url`` receives them."""

    functions_are_idle: Callable[[], bool]
    base_url: str = ""
    _received: dict[str, dict[str, Any] | None] = field(default_factory=dict)
    _taken: set[str] = field(default_factory=set)

    def expect(self) -> str:
        """Create a token for one response."""
        token = uuid4().hex
        self._received[token] = None
        return token

    def url(self, token: str) -> str:
        return f"{self.base_url}/answers/{token}"

    def receive(self, token: str, answer: dict[str, Any]) -> bool:
        """Store a response; returns False if its token is unknown. A second response is ignored."""
        if token in self._taken:
            return True
        if token not in self._received:
            return False
        self._received[token] = answer
        return True

    def take(self, token: str) -> dict[str, Any] | None:
        """Take the response; ``None`` if it has not arrived."""
        answer = self._received[token]
        if answer is not None:
            del self._received[token]
            self._taken.add(token)
        return answer
