"""The client checks inputs against protobuf messages, which it does not import."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tritonclient.grpc import model_config_pb2

from constructs_triton_client.input_checks import check_inputs
from constructs_triton_core.datatypes import DATATYPES
from constructs_triton_core.errors import RequestEncodingError
from triton_model_check.model_config.schema import new_model_config


@pytest.mark.parametrize(
    "message", [model_config_pb2.ModelConfig(), new_model_config()], ids=["tritonclient", "schema"]
)
def test_data_types_of_a_message_are_those_of_the_table(message: Any) -> None:
    """The numbers of the protobuf enum are the data types of the table."""
    numbers = message.input.add(name="X", dims=[1]).DESCRIPTOR.fields_by_name["data_type"].enum_type
    for row in DATATYPES:
        message.input[0].data_type = numbers.values_by_name[row.data_type].number
        array = np.zeros(1, dtype=row.dtype) if row.item_size else np.array([b""], dtype=object)
        check_inputs({"X": array}, message, {"X": "BF16"} if row.datatype == "BF16" else None)
        with pytest.raises(RequestEncodingError, match=f"must be {row.data_type}"):
            check_inputs({"X": np.zeros(1, "f4" if row.datatype != "FP32" else "f8")}, message)
