"""Reads and writes ``config.pbtxt``, and finds the place of an error."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from check_examples import write
from check_examples.repositories import CLASS
from cpu_limit import cpu_limit

from constructs_triton_core.errors import ModelConfigError
from triton_model_check.model_config.locations import Locations
from triton_model_check.model_config.schema import new_model_config
from triton_model_check.model_config.text import format_model_config, parse_model_config
from triton_model_check.model_repository import ModelRepository


@pytest.mark.parametrize(
    ("text", "code", "line", "column"),
    [
        ('name: "m"\nmax_batch: 8', "text-unknown-field", 2, 1),
        ('backend "python"', "text-syntax", 1, 9),
        ("input [ { data_type: FP32 } ]", "text-enum", 1, 22),
        ('input [ { data_type: "TYPE_FP32" } ]', "text-enum", 1, 22),
        ("max_batch_size: 1\nmax_batch_size: 2", "text-field-twice", 2, 17),
        ("dynamic_batching { } sequence_batching { }", "text-one-of", 1, 22),
        ("max_batch_size: ${size}", "text-template", 1, 17),
        ("max_batch_size: 8 // eight", "text-syntax", 1, 19),
        ("max_batch_size: +8", "text-syntax", 1, 17),
        ("max_batch_size: 1_0", "text-syntax", 1, 17),
        ("max_batch_size: 0o10", "text-syntax", 1, 17),
        ("max_batch_size:\u00a08", "text-syntax", 1, 16),
        ('name: "a\\q"', "text-syntax", 1, 9),
        ('\ufeffname: "m"', "text-syntax", 1, 1),
        ("input [ { dims: [ 1, ] } ]", "text-syntax", 1, 22),
    ],
)
def test_fault_names_code_line_and_column(text: str, code: str, line: int, column: int) -> None:
    """A file that the server's parser rejects is rejected, with the place of the token."""
    with pytest.raises(ModelConfigError) as caught:
        parse_model_config(text, "m/config.pbtxt")
    finding = caught.value.finding
    assert (finding.code, finding.line, finding.column) == (code, line, column)
    assert str(caught.value).startswith(f"m/config.pbtxt:{line}:{column}: ")


@pytest.mark.parametrize(
    ("text", "max_batch_size"),
    [
        ("max_batch_size: 010", 8),
        ("max_batch_size: 0x8;", 8),
        ("max_batch_size: - 8", -8),
        ("max_batch_size: 8 response_cache { enable: 0x1 }", 8),
        ("max_batch_size: 8\r\nresponse_cache < enable: t >", 8),
        ("max_batch_size: 8 # \u65e5\u672c", 8),
        (b"# caf\xe9\nmax_batch_size: 8", 8),  # a comment in another encoding
    ],
)
def test_spellings_that_the_server_reads_are_read(text: str | bytes, max_batch_size: int) -> None:
    """A file that the server's parser accepts is accepted, even if Python's parser rejects it."""
    assert parse_model_config(text).max_batch_size == max_batch_size


def test_unknown_name_is_guessed() -> None:
    """The error about a misspelled field or enum value suggests a name."""
    with pytest.raises(ModelConfigError, match='did you mean "max_batch_size"'):
        parse_model_config("max_batchsize: 8")
    with pytest.raises(ModelConfigError, match="did you mean TYPE_FP32"):
        parse_model_config("input { data_type: FP32 }")


TEXT = """name: "m"  # a comment
input [
  {
    name: "X"
    dims: [ 1,
            2 ]
  },
  { name: "Y" }
]
parameters { key: "a" value { string_value: "1" } }
parameters: { key: "b" value: { string_value: "two"
                                              "parts" } }
instance_group { kind: KIND_CPU }
"""


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (("name",), (1, 1, 1, 10)),
        (("input",), (2, 1, 9, 2)),
        (("input", 0), (3, 3, 7, 4)),
        (("input", 0, "dims"), (5, 5, 6, 16)),
        (("input", 0, "dims", 1), (6, 13, 6, 14)),
        (("input", 1, "name"), (8, 5, 8, 14)),
        (("input", 1, "dims"), (8, 3, 8, 16)),
        (("parameters", "b"), (11, 1, 12, 58)),
        (("parameters", "b", "value"), (11, 24, 12, 56)),
        (("instance_group", 0, "kind"), (13, 18, 13, 32)),
        (("instance_group", "kind"), (13, 18, 13, 32)),
        (("output",), None),
    ],
)
def test_places_of_fields(
    path: tuple[str | int, ...], place: tuple[int, int, int, int] | None
) -> None:
    """A field is found by name and index, a map entry by its key, an absent field by its parent."""
    assert Locations(TEXT).find(path) == place


@pytest.mark.parametrize(
    ("path", "statement", "value"),
    [
        (("name",), 'name: "m"', '"m"'),
        (("input", 0, "dims", 0), "1,", "1"),
        (("input", 0, "dims", 1), ",\n            2", "2"),
        (("input", 1), ',\n  { name: "Y" }', '{ name: "Y" }'),
        (("input", 1, "name"), 'name: "Y"', '"Y"'),
        (("parameters", "a", "key"), 'key: "a"', '"a"'),
        (("instance_group",), "instance_group { kind: KIND_CPU }", "{ kind: KIND_CPU }"),
        (("instance_group", 0), "instance_group { kind: KIND_CPU }", "{ kind: KIND_CPU }"),
        (("parameters",), None, None),  # two statements
        (("input", 1, "dims"), None, None),
        (("input", 2), None, None),
    ],
)
def test_parts_of_fields(
    path: tuple[str | int, ...], statement: str | None, value: str | None
) -> None:
    """A fix gets the text that removes a field and the text of its value,
    of exactly the field it names.
    """
    spans = Locations(TEXT).spans(path)
    found = spans and tuple(TEXT[slice(*span)] for span in (spans.statement, spans.value))
    assert found == (None if statement is None else (statement, value))


def test_a_separator_belongs_to_its_statement() -> None:
    """Removing a field removes the comma or semicolon behind it, but not its comment."""
    text = 'name: "m" ; max_batch_size: 8, # eight\n'
    spans = Locations(text).spans(("name",)), Locations(text).spans(("max_batch_size",))
    assert [text[slice(*each.statement)] for each in spans if each] == [
        'name: "m" ;',
        "max_batch_size: 8,",
    ]


def test_written_text_is_stable_and_reads_back() -> None:
    """Maps are written in the order of their keys, and every field is kept."""
    first, second = new_model_config(), new_model_config()
    for key in ("b", "a", "c"):
        first.parameters[key].string_value = key
    for key in ("c", "b", "a"):
        second.parameters[key].string_value = key
    text = format_model_config(first)
    assert text == format_model_config(second)
    assert parse_model_config(text) == first


def test_reading_a_configuration_imports_no_grpc() -> None:
    """Reading a configuration imports neither grpc nor NumPy."""
    program = (
        "import sys\n"
        "from triton_model_check.model_config.text import parse_model_config\n"
        "parse_model_config('max_batch_size: 3')\n"
        "bad = {'grpc', 'tritonclient', 'numpy', 'boto3', 'jsii', 'aws_cdk'} & set(sys.modules)\n"
        "assert not bad, bad\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# --- hostile input --------------------------------------------------------------------------------

HEAD = 'backend: "python"\nmax_batch_size: 8\n'
DIMS = HEAD + "input [ {{ dims: [ {} ] }} ]\n"


@pytest.mark.parametrize(
    "text",
    [
        DIMS.format(", ".join(["- 1"] * 2000)),
        HEAD + "metric_tags { key: 'a' value: 'b' }\n" * 9_000,
        HEAD + f"# : {'4' * 40_000}\n",
        HEAD + f"parameters {{ key: '{'4' * 40_000}' }}\n",
        HEAD + " " * ((1 << 20) - 100),
        HEAD + "response_cache { enable: 0x1 }",
    ],
    ids=["minus", "map", "comment", "digits", "blanks", "boolean"],
)
def test_long_configuration_is_read_in_linear_time(text: str) -> None:
    """Inputs for which one attempt for each place would take minutes are read."""
    with cpu_limit():
        assert parse_model_config(text).max_batch_size == 8


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (DIMS.format(", ".join(["1"] * 1_000_000)), "text-size"),
        (HEAD + "\n" * 1_000_000, "text-size"),
        (HEAD + "parameters { key: '" + "\\" * 2_000_000 + "' }", "text-size"),
        (HEAD + " " * (1 << 20), "text-size"),
        (HEAD + "parameters { key: '" + r"\377" * 60_000 + "' }", "text-size"),
        (HEAD + "parameters { key: '" + ("\\" * 102 + "a") * 100 + "' }", "text-size"),
        (HEAD + '"' * 40_000, "text-syntax"),
        (HEAD + '"\\' * 40_000, "text-syntax"),
        (HEAD + "${" * 40_000, "text-syntax"),
        (HEAD + "{%" * 40_000, "text-syntax"),
        (HEAD + f"dims: [ {'4' * 40_000} ]", "text-unknown-field"),
        (HEAD + "x" * 1_000_000, "text-unknown-field"),
        (HEAD + "input { " * 5000, "text-unknown-field"),
    ],
    ids=[
        *(
            "dims",
            "lines",
            "backslashes",
            "blanks",
            "many escapes",
            "runs of backslashes",
            "quotes",
        ),
        *("escapes", "holes", "blocks", "digits", "name", "nested"),
    ],
)
def test_hostile_configuration_is_rejected_in_linear_time(text: str, code: str) -> None:
    """Inputs that no tool writes are a finding after a bounded effort, with a short message."""
    with cpu_limit():
        with pytest.raises(ModelConfigError) as caught:
            parse_model_config(text)
        assert caught.value.finding.code == code
        assert len(str(caught.value)) < 1000


def test_places_in_a_long_line_are_found_in_linear_time() -> None:
    """The place of the last of 50,000 dims in one line is found."""
    text = DIMS.format(",".join(["1"] * 50_000))
    with cpu_limit():
        place = Locations(text).find(("input", 0, "dims", 49_999))
        assert place is not None
        assert place[:2] == (3, text.split("\n")[2].rindex("1") + 1)


def test_escapes_outside_utf8_are_read() -> None:
    """Triton reads a string whose escapes are not UTF-8; other strings stay as they are.

    Protobuf's parser in Python raises an error instead. No public issue was found.
    """
    text = r'parameters { key: "\377\303\244\"" value { string_value: "\303\244" } }'
    ((key, value),) = parse_model_config(text).parameters.items()
    assert (key, value.string_value) == ('\ufffd\u00e4"', "\u00e4")


def test_configuration_above_one_mib_is_a_finding(tmp_path: Path) -> None:
    """The file is not read; a hole costs no disk space."""
    (tmp_path / "m/1").mkdir(parents=True)
    with (tmp_path / "m/config.pbtxt").open("wb") as file:
        file.truncate((1 << 20) + 1)
    (finding,) = ModelRepository.from_directory(tmp_path).check().findings
    assert (finding.code, finding.path) == ("text-size", "m/config.pbtxt")


@pytest.mark.parametrize("name", ["config.pbtxt", "1/model.py", "1/weights"])
def test_named_pipe_is_a_finding_and_is_not_opened(tmp_path: Path, name: str) -> None:
    """``check`` names a pipe and does not wait for its writer."""
    write({"config.pbtxt": HEAD, "1/model.py": CLASS}, tmp_path / "m")
    (tmp_path / "m" / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / "m" / name)
    findings = ModelRepository.from_directory(tmp_path).check().findings
    special = [finding for finding in findings if finding.code == "layout-special-file"]
    assert {each.path: each.message for each in special} == {f"m/{name}": f"{name} is a named pipe"}


def test_number_that_no_enum_can_hold_has_no_place() -> None:
    """The parser reports it without a line and a column."""
    with pytest.raises(ModelConfigError, match="cannot be parsed") as caught:
        parse_model_config("input [ { data_type: 99999999999 } ]", "m/config.pbtxt")
    finding = caught.value.finding
    assert (finding.code, finding.line, finding.column) == ("text-syntax", None, None)
