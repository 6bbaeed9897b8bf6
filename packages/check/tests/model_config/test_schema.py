"""Triton's schema of ``config.pbtxt``, which the package contains."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields

import facts_refresh
import pytest
from google.protobuf import descriptor_pb2

from triton_model_check.model_config import ModelConfig
from triton_model_check.model_config.schema import data_type_name, field_names

# Another version of the schema, as another tritonclient would register it.
OTHER_SCHEMA = """
from google.protobuf import descriptor_pb2, descriptor_pool
other = descriptor_pb2.FileDescriptorProto(
    name="model_config.proto", package="inference", syntax="proto3"
)
other.message_type.add(name="ModelConfig").field.add(name="added", number=99, type=9, label=1)
descriptor_pool.Default().Add(other)
"""
SCHEMA_FIRST = (
    "from triton_model_check.model_config.text import parse_model_config; parse_model_config('')\n"
)


def test_schema_is_that_of_tritonclient() -> None:
    """The committed descriptor and its license are those of the installed tritonclient."""
    assert facts_refresh.SCHEMA.read_bytes() == facts_refresh.published_schema(), (
        "make facts-refresh"
    )
    assert facts_refresh.SCHEMA_LICENSE.read_text() == facts_refresh.published_license(), (
        "make facts-refresh"
    )


def test_every_message_and_field_has_a_typed_value() -> None:
    """The builder has a class for every message but ModelParameter,
    with exactly the message's fields.
    """
    schema = descriptor_pb2.FileDescriptorProto.FromString(facts_refresh.SCHEMA.read_bytes())
    names = {message.name for message in schema.message_type} - {"ModelParameter"}
    assert names == {name.split(".")[1] for name in ModelConfig._CLASSES}
    for name, typed in ModelConfig._CLASSES.items():
        declared = {field.name.rstrip("_") for field in fields(typed)} - {"extra"}
        assert declared == set(field_names(name.partition(".")[2])), name


def test_number_without_a_name_is_shown() -> None:
    """A data type is shown by its name, and a number that the schema does
    not have as the number.
    """
    assert (data_type_name(11), data_type_name(99)) == ("TYPE_FP32", "99")


@pytest.mark.parametrize("first", [SCHEMA_FIRST, ""], ids=["schema first", "tritonclient first"])
@pytest.mark.parametrize(
    "theirs",
    ["from tritonclient.grpc import model_config_pb2\n", OTHER_SCHEMA],
    ids=["same", "other"],
)
def test_schema_and_tritonclient_share_one_process(first: str, theirs: str) -> None:
    """The schema and tritonclient's, also of another version, can be loaded in either order.

    Two schemas in the default pool are an error:
    https://github.com/triton-inference-server/client/issues/730.
    """
    program = (
        f"{first}{theirs}"
        "from triton_model_check.model_config.text import parse_model_config\n"
        "assert parse_model_config('max_batch_size: 3').max_batch_size == 3\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True)


def test_message_of_tritonclient_becomes_a_typed_value() -> None:
    """A configuration that tritonclient received, such as by ``get_model_config``, can be read."""
    program = (
        "from tritonclient.grpc import model_config_pb2\n"
        "from triton_model_check.model_config import ModelConfig\n"
        "received = model_config_pb2.ModelConfig(name='a', max_batch_size=3)\n"
        "received.input.add(name='x', data_type=11, dims=[4])\n"
        "received.parameters['key'].string_value = 'value'\n"
        "config = ModelConfig.from_message(received)\n"
        "assert (config.input[0].data_type, config.parameters, config.extra) == "
        "('TYPE_FP32', {'key': 'value'}, '')\n"
        "assert config.to_message().SerializeToString(deterministic=True) == "
        "received.SerializeToString(deterministic=True)\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True)


def test_schema_is_read_without_protobufs_c_code() -> None:
    """Where protobuf has no C code, its implementation in Python reads configurations."""
    code = """
import os
os.environ["PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"] = "python"
from triton_model_check.model_config.text import parse_model_config
config = parse_model_config('name: "m" input { name: "x" data_type: TYPE_FP32 dims: -1 }')
assert config.input[0].name == "x" and type(config).__module__ != "google._upb._message"
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
