"""Models that generate, for endpoints of the real server."""

from __future__ import annotations

from local_assembly import Files, below

_TENSORS = """
input [ { name: "text_input" data_type: TYPE_STRING dims: [ 1 ] },
        { name: "max_tokens" data_type: TYPE_INT32 dims: [ 1 ] optional: true },
        { name: "bias" data_type: TYPE_FP32 dims: [ -1 ] optional: true } ]
output [ { name: "text_output" data_type: TYPE_STRING dims: [ 1 ] },
         { name: "ids" data_type: TYPE_INT32 dims: [ -1 ] },
         { name: "seen" data_type: TYPE_STRING dims: [ 1 ] } ]
"""
_CONFIG = """
backend: "python"
max_batch_size: %d
model_transaction_policy { decoupled: %s }
instance_group [ { kind: KIND_CPU } ]
"""
#: Sends one response for each token. "seen" has the shape of "bias" and the parameters of the
#: request.
_MODEL = """
import json
import time

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.decoupled = json.loads(args["model_config"])["model_transaction_policy"]["decoupled"]

    def execute(self, requests):
        answers = [self.answer(each) for each in requests]
        return None if self.decoupled else answers

    def answer(self, request):
        def given(name):
            tensor = pb_utils.get_input_tensor_by_name(request, name)
            return None if tensor is None else tensor.as_numpy()

        text = given("text_input").reshape(-1)[0].decode("utf-8")
        count, bias = given("max_tokens"), given("bias")
        seen = f"{None if bias is None else bias.shape} {request.parameters()}"
        if not self.decoupled:
            return self.response(text + " once", [1, 2], seen)
        sender = request.get_response_sender()
        if text == "fail first":
            sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError("no first")), flags=1)
            return None
        for number in range(3 if count is None else int(count.reshape(-1)[0])):
            if sender.is_cancelled():
                print("CANCELLED at", number, flush=True)
                break
            if text == "leave":
                time.sleep(0.05)
            if text.lower() == "fail later" and number == 2:
                sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError("broke at 2")))
                break
            ids = [number] * (1 if number % 2 else 2)
            sender.send(self.response(f"{text}{number} ", ids, seen))
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return None

    def response(self, text, ids, seen):
        strings = {"text_output": text, "seen": seen}
        tensors = [
            pb_utils.Tensor(name, np.array([each.encode()], object))
            for name, each in strings.items()
        ]
        tensors.append(pb_utils.Tensor("ids", np.array(ids, np.int32)))
        return pb_utils.InferenceResponse(tensors)
"""
#: Its first step changes the text, and its second one is decoupled.
_ENSEMBLE = (
    'platform: "ensemble"\nmax_batch_size: 4\n'
    + _TENSORS
    + """
ensemble_scheduling {
  step { model_name: "upper" model_version: -1
    input_map { key: "TEXT" value: "text_input" } output_map { key: "UPPER" value: "changed" } }
  step { model_name: "tok" model_version: -1
    input_map { key: "text_input" value: "changed" }
    input_map { key: "max_tokens" value: "max_tokens" }
    input_map { key: "bias" value: "bias" }
    output_map { key: "text_output" value: "text_output" } output_map { key: "ids" value: "ids" }
    output_map { key: "seen" value: "seen" } }
}
"""
)
_UPPER_CONFIG = """
backend: "python"
max_batch_size: 4
input [ { name: "TEXT" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "UPPER" data_type: TYPE_STRING dims: [ 1 ] } ]
instance_group [ { kind: KIND_CPU } ]
"""
_UPPER = """
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        texts = [pb_utils.get_input_tensor_by_name(each, "TEXT").as_numpy() for each in requests]
        return [self.answer(text) for text in texts]

    def answer(self, text):
        upper = np.array([each.decode().upper().encode() for each in text.reshape(-1)], object)
        return pb_utils.InferenceResponse([pb_utils.Tensor("UPPER", upper.reshape(text.shape))])
"""


def generating_model(*, decoupled: bool = True, max_batch_size: int = 0) -> Files:
    """The model ``tok``. If it is not ``decoupled``, it has one response."""
    config = _CONFIG % (max_batch_size, "true" if decoupled else "false")
    return below("tok", {"config.pbtxt": config + _TENSORS, "1/model.py": _MODEL})


def generating_ensemble() -> Files:
    """The ensemble ``pipe``, of two models that have batches."""
    upper = below("upper", {"config.pbtxt": _UPPER_CONFIG, "1/model.py": _UPPER})
    pipe = below("pipe", {"config.pbtxt": _ENSEMBLE, "1/.keep": ""})
    return {**generating_model(max_batch_size=4), **upper, **pipe}
