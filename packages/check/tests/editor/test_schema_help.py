"""The comments of Triton's schema, and what can be written by it."""

from __future__ import annotations

import pytest

from triton_model_check.editor.schema_help import (
    describe_field,
    describe_value,
    field_at,
    message_at,
    propose_fields,
    propose_values,
)


@pytest.mark.parametrize(
    ("names", "described"),
    [
        (("max_batch_size",), "`max_batch_size`: int32\n\nMaximum batch size allowed"),
        (("input", "dims"), "`dims`: repeated int64\n\n"),
        (("input",), "`input`: repeated ModelInput\n\n"),
        (("parameters",), "`parameters`: map<string, ModelParameter>\n\n"),
        (("version_policy", "latest"), "`latest`: ModelVersionPolicy.Latest\n\n"),
        (("instance_group", "kind"), "`kind`: ModelInstanceGroup.Kind\n\n"),
    ],
)
def test_field_is_described(names: tuple[str, ...], described: str) -> None:
    """Its type is written as in the schema, and the comment follows."""
    field = field_at(names)
    assert field is not None
    assert describe_field(field).startswith(described)


def test_values_of_an_enum_are_part_of_the_description() -> None:
    """Values without comments are one sentence, those with comments a list."""
    data_type, kind = field_at(("input", "data_type")), field_at(("instance_group", "kind"))
    assert data_type is not None
    assert kind is not None
    assert "One of `TYPE_INVALID`, `TYPE_BOOL`," in describe_field(data_type)
    assert "- `KIND_CPU`: This instance group represents" in describe_field(kind)
    assert describe_value(kind, "KIND_CPU").startswith("`KIND_CPU`\n\nThis instance group")
    assert describe_value(kind, "KIND_NONE") == describe_value(data_type, "TYPE_BOOL") == ""


def test_choice_names_what_it_excludes() -> None:
    """A message has at most one field of a choice."""
    field = field_at(("dynamic_batching",))
    assert field is not None
    assert describe_field(field).endswith("Excludes `sequence_batching`, `ensemble_scheduling`.")


@pytest.mark.parametrize("names", [("inputs",), ("input", "x", "y"), ("name", "x")])
def test_unknown_fields_have_no_message(names: tuple[str, ...]) -> None:
    """A misspelt field leads nowhere, and neither does a scalar."""
    assert message_at(names) is None


def test_every_field_can_be_written() -> None:
    """Each proposal of each message has a type, and a text with a place for the cursor."""
    waiting, seen = [message_at(())], set()
    while waiting:
        message = waiting.pop()
        assert message is not None
        if message.full_name in seen:
            continue
        seen.add(message.full_name)
        for proposal in propose_fields(message, ()):
            assert proposal.detail
            assert "$0" in proposal.snippet or "$2" in proposal.snippet
            assert "$" not in proposal.plain
        waiting += [field.message_type for field in message.fields if field.message_type]
    assert len(seen) > 30


def test_field_that_is_set_is_proposed_only_if_it_repeats() -> None:
    """A second ``max_batch_size`` is an error, a second ``input`` is not."""
    message = message_at(())
    assert message is not None
    labels = {proposal.label for proposal in propose_fields(message, ("max_batch_size", "input"))}
    assert "input" in labels
    assert "max_batch_size" not in labels


def test_values_are_proposed_where_the_schema_lists_them() -> None:
    """Enums and booleans have values, numbers and strings have none."""
    kind, optional, name = (
        field_at(("instance_group", "kind")),
        field_at(("input", "optional")),
        field_at(("name",)),
    )
    assert kind is not None
    assert optional is not None
    assert name is not None
    assert next(propose_values(kind)).label == "KIND_AUTO"
    assert [proposal.label for proposal in propose_values(optional)] == ["true", "false"]
    assert list(propose_values(name)) == []
