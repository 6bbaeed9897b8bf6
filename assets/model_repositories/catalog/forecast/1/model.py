"""Triton model: the next values of a time series."""

import json

import numpy as np
import triton_python_backend_utils as pb_utils
from smoothing import Smoothing, forecast

HORIZON = 12
MAX_HORIZON = 1000


class TritonPythonModel:
    """series: FP32 [n], n >= 2; horizon: optional INT32 [1], else 12 -> forecast: FP32 [horizon]."""

    def initialize(self, args):
        """Take the smoothing from the model configuration's parameters, once for each instance."""
        parameters = json.loads(args["model_config"])["parameters"]
        names = ("level_smoothing", "trend_smoothing", "damping")
        self.smoothing = Smoothing(*(float(parameters[name]["string_value"]) for name in names))

    def execute(self, requests):
        """Answer each request by itself."""
        return [self.respond(request) for request in requests]

    def respond(self, request):
        """Return the response to one request: the forecast, or an error that says what to send."""
        series = pb_utils.get_input_tensor_by_name(request, "series").as_numpy()
        wanted = pb_utils.get_input_tensor_by_name(request, "horizon")
        horizon = HORIZON if wanted is None else int(wanted.as_numpy()[0])
        message = complaint(series, horizon)
        if message:
            return refusal(message)
        values = forecast(self.smoothing, series, horizon).astype(np.float32)
        return pb_utils.InferenceResponse([pb_utils.Tensor("forecast", values)])


def complaint(series, horizon):
    """Return what is wrong with a request, or None."""
    if len(series) < 2:
        return f"series: must hold at least 2 values, got {len(series)}"
    if not np.isfinite(series).all():
        return "series: every value must be a finite number, got NaN or infinity; fill gaps before sending"
    if not 1 <= horizon <= MAX_HORIZON:
        return f"horizon: must be 1 to {MAX_HORIZON}, got {horizon}"
    return None


def refusal(message):
    """Return an error response that SageMaker passes on as the caller's fault: 400, not 500."""
    return pb_utils.InferenceResponse(error=pb_utils.TritonError(message, pb_utils.TritonError.INVALID_ARG))
