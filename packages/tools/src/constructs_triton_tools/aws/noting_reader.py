"""Reads from AWS what is optional, and notes what could not be read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from constructs_triton_core.aws_reader import AwsError, AwsReader

_PAGE_TOKENS = ("NextToken", "nextToken", "Marker")


class NotingReader(AwsReader):
    """Calls AWS; what an optional call cannot read is noted, one sentence for each operation."""

    #: The largest number of pages of one list.
    most_pages = 10

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.not_read: list[str] = []
        self._has_answered = False
        self._silent_services: set[str] = set()

    def require(self, service: str, operation: str, **request: Any) -> dict[str, Any]:
        """Return the answer of an operation.

        Raises:
            AwsError: AWS refuses it, or cannot be reached.
        """
        answer = super().require(service, operation, **request)
        self._has_answered = True
        return answer

    def read(self, service: str, operation: str, **request: Any) -> dict[str, Any]:
        """Return the answer of an operation; an empty one if it cannot be read, which is noted.

        A service that cannot be reached after another one has answered, as in a VPC without an
        endpoint of the service, is asked once only.

        Raises:
            AwsError: AWS cannot be reached.
        """
        if service in self._silent_services:
            return {}
        try:
            return self.require(service, operation, **request)
        except AwsError as error:
            if not error.code and self._has_answered:
                self._silent_services.add(service)
                self.not_read.append(f"{service}: {error}")
            else:
                self.note(error)
            return {}

    def note(self, error: AwsError) -> None:
        """Note the error of a call that AWS refused."""
        if not error.code:
            raise error
        if str(error) not in self.not_read:
            self.not_read.append(str(error))

    def read_list(
        self, service: str, operation: str, member: str, **request: Any
    ) -> Iterator[dict[str, Any]]:
        """Yield the members of a list from up to ``most_pages`` pages;
        what cannot be read is noted.
        """
        for _ in range(self.most_pages):
            answer = self.read(service, operation, **request)
            yield from answer.get(member, [])
            token = next((name for name in _PAGE_TOKENS if answer.get(name)), None)
            if token is None:
                return
            request[token] = answer[token]
        self.not_read.append(f"{service}:{operation}: has more pages than are read")
