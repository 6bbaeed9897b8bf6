"""Triton model: T5 by PyTorch and transformers, tokens in, tokens out. Runs in the image, on its GPU."""

import json
from pathlib import Path

import torch
import triton_python_backend_utils as pb_utils
from transformers import T5ForConditionalGeneration

INPUTS = ("input_ids", "attention_mask")
OUTPUT = "output"


class TritonPythonModel:
    """input_ids, attention_mask: INT32 [n, source] -> output: INT32 [n, target]."""

    @staticmethod
    def auto_complete_config(auto_complete_model_config):
        """Say what config.pbtxt leaves out; what it says must agree."""
        for name in INPUTS:
            auto_complete_model_config.add_input({"name": name, "data_type": "TYPE_INT32", "dims": [-1]})
        auto_complete_model_config.add_output({"name": OUTPUT, "data_type": "TYPE_INT32", "dims": [-1]})
        return auto_complete_model_config

    def initialize(self, args):
        """Put the weights beside this file onto the device that Triton gave this instance."""
        parameters = json.loads(args["model_config"])["parameters"]
        # Each instance is a process: together they should not ask for more cores than the machine has.
        torch.set_num_threads(int(parameters["intra_op_num_threads"]["string_value"]))
        self.max_new_tokens = int(parameters["max_new_tokens"]["string_value"])
        on_gpu = args["model_instance_kind"] == "GPU"
        self.device = torch.device(f"cuda:{args['model_instance_device_id']}" if on_gpu else "cpu")
        folder = Path(args["model_repository"]) / args["model_version"] / "checkpoint"
        self.model = T5ForConditionalGeneration.from_pretrained(folder, local_files_only=True)
        self.model.to(self.device).eval()

    @torch.inference_mode()
    def execute(self, requests):
        """Answer what the dynamic batcher put together, all of one length, with one greedy decoding."""
        ids, mask = (
            torch.cat([self.tensor(request, name) for request in requests]).to(self.device, torch.int64)
            for name in INPUTS
        )
        options = {"max_new_tokens": self.max_new_tokens, "num_beams": 1, "do_sample": False}
        tokens = self.model.generate(input_ids=ids, attention_mask=mask, **options).to("cpu", torch.int32)
        sizes = [len(self.tensor(request, INPUTS[0])) for request in requests]
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor(OUTPUT, part.numpy())])
            for part in torch.split(tokens, sizes)
        ]

    @staticmethod
    def tensor(request, name):
        """Return an input without a copy, wherever it lies: DLPack hands over the memory itself."""
        return torch.from_dlpack(pb_utils.get_input_tensor_by_name(request, name).to_dlpack())

    def finalize(self):
        """Give the GPU's memory back before the process ends."""
        self.model = None
        torch.cuda.empty_cache()
