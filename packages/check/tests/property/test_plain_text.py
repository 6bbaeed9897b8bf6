"""The fast reader of ``config.pbtxt`` reads what protobuf's parser reads, or leaves it to that."""

from __future__ import annotations

from pathlib import Path

from google.protobuf import text_format
from hypothesis import example, given, settings
from hypothesis import strategies as st

from triton_model_check.model_config.schema import new_model_config, read_plain
from triton_model_check.model_config.text_spellings import lenient_spellings

ROOT = Path(__file__).parents[4]
PIECES = (
    *(
        'name: "m"',
        "name: 'm'",
        'name: "a" "b"',
        'name "m"',
        'name: "a\\n"',
        'name: "é"',
        'platform:"p"',
    ),
    *(
        "max_batch_size: 8",
        "max_batch_size: 08",
        "max_batch_size: -0",
        "max_batch_size: 0",
        "9999999999",
    ),
    *(
        "max_batch_size: 0x8",
        "max_batch_size: +8",
        "max_batch_size: 1_0",
        "max_batch_size: - 1",
        "8.0",
    ),
    *(
        "input",
        "output [",
        "{",
        "}",
        "<",
        ">",
        "[",
        "]",
        ",",
        ";",
        ":",
        "\n",
        "# a 'comment\"\n",
        "# \0\n",
    ),
    *(
        "dims: [ -1, 4 ]",
        "dims: 3",
        "dims: [ ]",
        "dims: [ 1, ]",
        "dims: [ 1 2 ]",
        "dims: [1,2],",
        "dims [1]",
    ),
    *("data_type: TYPE_FP32", 'data_type: "TYPE_FP32"', "data_type: 3", "data_type: TYPE_NONE"),
    *(
        "optional: true",
        "optional: True",
        "optional: 1",
        "input { name: 'x' dims: 1 }",
        "input: [ ]",
    ),
    *(
        "parameters { key: 'a' value { string_value: 'b' } }",
        "parameters { value { } }",
        "parameters { }",
    ),
    *(
        "dynamic_batching { }",
        "sequence_batching { oldest { } direct { } }",
        "dynamic_batching: { }",
    ),
    *(
        "instance_group [ { kind: KIND_GPU gpus: [ 0 ] }, { count: 2 } ]",
        "version_policy { all { } }",
    ),
    *(
        "version_policy: { latest { num_versions: 2 } }",
        "cc_model_filenames { key: '7.5' value: 'x' }",
    ),
    *(
        "sequence_batching { oldest { max_candidate_sequences: 4 } }",
        "default_model_filename: ''",
        "\x1c",
    ),
    *(
        "model_warmup { inputs { key: 'x' value { dims: 1 zero_data: true random_data: true } } }",
        "\x7f",
    ),
    *("optimization { priority: PRIORITY_MAX graph { level: -1 } }", "dynamic_batching {", "name"),
)
texts = st.lists(st.sampled_from(PIECES), max_size=12).flatmap(
    lambda pieces: st.sampled_from([" ", "", "\n"]).map(lambda between: between.join(pieces))
)


def compare(text: str) -> bool:
    """Compare both readers, and return whether the text was plain."""
    found = read_plain(text)
    if found is not None:
        assert not list(lenient_spellings(text))
        expected = text_format.Parse(text, new_model_config())
        assert found == expected
        assert found.SerializeToString(deterministic=True) == expected.SerializeToString(
            deterministic=True
        )
    return found is not None


@settings(max_examples=600, deadline=None)
@given(texts)
@example("")
@example("max_batch_size: 8 max_batch_size: 8")
@example("dynamic_batching { } sequence_batching { }")
@example('name: "a"\x85')
def test_text_of_any_pieces(text: str) -> None:
    """What the fast reader accepts, protobuf's parser reads as an equal message."""
    compare(text)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_changed_configuration(data: st.DataObject) -> None:
    """The same holds for a configuration of this repository in which some
    characters were changed.
    """
    text = data.draw(st.sampled_from(CONFIGURATIONS))
    for _ in range(data.draw(st.integers(1, 3))):
        at, length = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 3))
        text = (
            text[:at]
            + data.draw(st.text("{}[]:,;#\"'\\ \n-+.01xa", max_size=2))
            + text[at + length :]
        )
    compare(text)


CONFIGURATIONS = [
    path.read_text(encoding="utf-8")
    for folder in ("assets", "examples", "packages/check/tests", "tests")
    for path in sorted((ROOT / folder).rglob("*.pbtxt"))
]


def test_configurations_of_this_repository_are_plain() -> None:
    """The fast reader reads nearly every configuration that people wrote."""
    plain = [compare(text) for text in CONFIGURATIONS]
    assert sum(plain) > 0.9 * len(plain) > 10
