"""Lists of AWS that have several pages, and what could not be read."""

from __future__ import annotations

from typing import Any

import pytest

from constructs_triton_tools.aws.noting_reader import NotingReader


class Pages(NotingReader):
    """Answers with pages, each with the token of the next one."""

    def __init__(self, token: str, pages: int) -> None:
        super().__init__(None)
        self.token, self.last = token, pages

    def require(self, service: str, operation: str, **request: Any) -> dict[str, Any]:
        assert (service, operation) == ("iam", "list")
        number = int(request.get(self.token, 1))
        return {
            "Items": [{"Number": number}],
            **({self.token: str(number + 1)} if number < self.last else {}),
        }


@pytest.mark.parametrize("token", ["NextToken", "nextToken", "Marker"])
def test_list_has_the_members_of_all_pages(token: str) -> None:
    """A list is read to its end by the token of its service; a list that is longer is noted."""
    reader = Pages(token, 10)
    assert [each["Number"] for each in reader.read_list("iam", "list", "Items")] == list(
        range(1, 11)
    )
    assert reader.not_read == []
    reader = Pages(token, 11)
    assert [each["Number"] for each in reader.read_list("iam", "list", "Items")] == list(
        range(1, 11)
    )
    assert reader.not_read == ["iam:list: has more pages than are read"]
