"""Triton model: continues texts token by token, all waiting requests in one batch."""

import json
import queue
import threading
import time
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils
from decoding import Decoder
from tokenizers import Tokenizer

DEFAULT_MAX_TOKENS = 16
FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


class Sequence:
    """A request that is being answered."""

    def __init__(self, request, tokenizer):
        self.sender = request.get_response_sender()
        ids, text = given(request, "input_ids"), given(request, "text_input")
        self.ids = [] if ids is None else ids.tolist()
        if ids is None and text is not None:
            self.ids = tokenizer.encode(text[0].decode("utf-8")).ids
        limit = given(request, "max_tokens")
        self.left = DEFAULT_MAX_TOKENS if limit is None else int(limit[0])


class TritonPythonModel:
    """text_input or input_ids -> one response for each new token."""

    def initialize(self, args):
        """Read the weights, and start the thread that generates."""
        folder = Path(args["model_repository"]) / args["model_version"]
        parameters = json.loads(args["model_config"])["parameters"]
        self.pause = float(parameters["seconds_per_token"]["string_value"])
        self.decoder = Decoder(folder / "weights.npz")
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.arrived = queue.SimpleQueue()
        self.thread = threading.Thread(target=self.generate)
        self.thread.start()

    def execute(self, requests):
        """Hand the requests to the thread. A decoupled model returns nothing here."""
        for request in requests:
            self.arrived.put(Sequence(request, self.tokenizer))

    def finalize(self):
        """End the thread."""
        self.arrived.put(None)
        self.thread.join()

    def generate(self):
        """Make one step for all sequences at a time; new requests join between two steps."""
        active = []
        while True:
            if not active or not self.arrived.empty():
                arrived = self.arrived.get()
                if arrived is None:
                    return
                active.append(arrived)
                continue
            active = [each for each in active if not self.is_finished(each)]
            if active:
                self.step(active)

    def is_finished(self, sequence):
        """End a sequence that has all its tokens, or whose caller has left."""
        is_cancelled = sequence.sender.is_cancelled()
        if is_cancelled:
            print(f"cancelled with {sequence.left} tokens left", flush=True)
        if is_cancelled or sequence.left <= 0:
            sequence.sender.send(flags=FINAL)
            return True
        return False

    def step(self, active):
        """Send the next token of each sequence."""
        time.sleep(self.pause)
        tokens = self.decoder.next_tokens([each.ids for each in active])
        for sequence, token in zip(active, tokens, strict=True):
            sequence.ids.append(int(token))
            sequence.left -= 1
            sequence.sender.send(self.response(int(token), len(active)))

    def response(self, token, sequences):
        """Return the response for one token."""
        text = self.tokenizer.decode([token]).encode("utf-8")
        return pb_utils.InferenceResponse(
            [
                pb_utils.Tensor("text_output", np.array([text], object)),
                pb_utils.Tensor("num_output_tokens", np.array([1], np.uint32)),
                pb_utils.Tensor("batched_sequences", np.array([sequences], np.uint32)),
            ]
        )


def given(request, name):
    """Return an input's array; None if the request does not have it."""
    tensor = pb_utils.get_input_tensor_by_name(request, name)
    return None if tensor is None else tensor.as_numpy()
