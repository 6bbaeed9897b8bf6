"""Sequences on several variants, with the real server: what docs/guides/sequences.md says."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from local_assembly import AssemblyBuilder
from triton_server import needs_server

from constructs_triton_client import SequencePosition, TritonClient
from constructs_triton_core.errors import InvocationError
from constructs_triton_tools.local import LocalEndpoint

pytestmark = [pytest.mark.e2e, needs_server, pytest.mark.xdist_group("local_endpoints")]

CONFIG = """backend: "python"
max_batch_size: 1
input { name: "x" data_type: TYPE_FP32 dims: 1 }
output { name: "sum" data_type: TYPE_FP32 dims: 1 }
sequence_batching {
  max_sequence_idle_microseconds: 60000000
  control_input {
    name: "start"
    control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] }
  }
}
instance_group { count: 2 kind: KIND_CPU }
"""
MODEL = """import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [self.add(each) for each in requests]

    def add(self, request):
        tensors = [pb_utils.get_input_tensor_by_name(request, name) for name in ("x", "start")]
        value, start = (each.as_numpy() for each in tensors)
        self.sum = value if start.any() else self.sum + value
        return pb_utils.InferenceResponse([pb_utils.Tensor("sum", self.sum)])
"""
ONE = {"x": np.ones((1, 1), np.float32)}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TritonClient]:
    """A client of an endpoint with two variants of a model that adds up a sequence."""
    builder = AssemblyBuilder(tmp_path_factory.mktemp("sequences") / "cdk.out")
    files = {"sums/config.pbtxt": CONFIG, "sums/1/model.py": MODEL}
    builder.single_model("Sums", builder.asset("sums", files))
    builder.endpoint("Sticky", {"A": ("Sums", 1), "B": ("Sums", 1)}, name="sums")
    with LocalEndpoint.from_assembly(builder.write()) as local:
        yield TritonClient.for_endpoint("sums", endpoint_url=local.endpoint_url)


def add(client: TritonClient, id: int, variant: str, *, start: bool = False) -> float:
    sequence = SequencePosition(id, start=start)
    return float(client.infer(ONE, sequence=sequence, TargetVariant=variant)["sum"].item())


def test_a_variant_keeps_the_sequence_together(client: TritonClient) -> None:
    """Requests of two sequences that each name their variant are added up apart."""
    sums = [add(client, 7, "A", start=True), add(client, 8, "B", start=True)]
    sums += [add(client, 7, "A"), add(client, 8, "B"), add(client, 7, "A")]
    assert sums == [1, 1, 2, 2, 3]


def test_another_variant_does_not_know_the_sequence(client: TritonClient) -> None:
    """The next request of a sequence is refused by an instance that has not seen its start."""
    assert add(client, 9, "A", start=True) == 1
    with pytest.raises(InvocationError, match="must specify the START flag"):
        add(client, 9, "B")
