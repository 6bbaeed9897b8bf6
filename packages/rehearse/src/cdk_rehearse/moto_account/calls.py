"""Operations of services in moto's JSON protocol, answered by functions that do not know moto."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from moto.core.responses import ActionResult

from .differences import Difference, Replacement
from .requests import access_key_id


@dataclass(frozen=True)
class Call:
    """A call of an operation."""

    members: dict[str, Any]
    """The members of the request."""
    region: str
    access_key_id: str
    """Who sent it."""
    simulated: Callable[[], Mapping[str, Any]]
    """Carries the operation out as moto does, and returns its answer."""


Handler = Callable[[Call], Mapping[str, Any]]
"""Answers a call; an exception of ``refusals`` refuses it."""


@dataclass(frozen=True)
class Operation(Difference):
    """A method of moto that answers an operation."""

    def answered_by(self, handler: Handler) -> Replacement:
        """Answer the operation by a function."""
        if self.is_missing:
            return self.replaced_by(lambda response: _answer(handler, response, _nothing))
        return self.wrapped_by(
            lambda original, response: _answer(handler, response, lambda: original(response))
        )


def _answer(handler: Handler, response: Any, original: Callable[[], Any]) -> ActionResult:
    """Answer a request by a handler, which may ask moto for its answer."""
    call = Call(
        members=json.loads(response.body),
        region=response.region,
        access_key_id=access_key_id(response.headers),
        simulated=lambda: _members(original()),
    )
    return ActionResult(handler(call))


def _members(answer: Any) -> Mapping[str, Any]:
    # An operation without members is answered by an EmptyResult, whose result is None.
    members: Mapping[str, Any] = answer.result or {}
    return dict(members)


def _nothing() -> ActionResult:
    raise NotImplementedError


def now() -> datetime:
    """The time as moto stores it, without a time zone."""
    return datetime.now(UTC).replace(tzinfo=None)
