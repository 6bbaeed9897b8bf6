"""Lists of AWS that have several pages, and permissions that are missing."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from constructs_triton.operations.aws_reader import AwsReader, missing_permission


class Pages(AwsReader):
    """Answers with pages, each with the token of the next one."""

    def __init__(self, token: str, pages: int) -> None:
        super().__init__(None)  # type: ignore[arg-type] # it makes no client
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
    assert [each["Number"] for each in reader.read_list("iam", "list", "Items")] == list(range(1, 11))
    assert reader.not_read == []
    reader = Pages(token, 11)
    assert [each["Number"] for each in reader.read_list("iam", "list", "Items")] == list(range(1, 11))
    assert reader.not_read == ["iam:list: has more pages than are read"]


@pytest.mark.parametrize(
    ("operation", "code", "message", "permission"),
    [
        ("HeadObject", "403", "Forbidden", "s3:GetObject"),
        ("ListObjectsV2", "AccessDenied", "Access Denied", "s3:ListBucket"),
        ("GetObject", "AccessDenied", "me is not authorized to perform: kms:Decrypt on it", "kms:Decrypt"),
        ("HeadObject", "404", "Not Found", None),
    ],
)
def test_missing_permission_is_the_iam_action(
    operation: str, code: str, message: str, permission: str | None
) -> None:
    """The name is what a policy has to allow, which is not always the operation."""
    error = ClientError({"Error": {"Code": code, "Message": message}}, operation)
    assert missing_permission("s3", error) == permission
