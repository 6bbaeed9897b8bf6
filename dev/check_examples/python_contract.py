"""Examples of the checks of what a Python model does when it loads, and with requests.

The models of the checks of loading are complete: the real server gives the same verdicts.
"""

from __future__ import annotations

from dataclasses import replace
from textwrap import indent

from check_examples.repositories import HEAD, Example, Files, one
from triton_model_check.model_config.target import Target

_IMPORTS = "import json\n\nimport numpy as np\nimport triton_python_backend_utils as pb_utils\n\n\n"
_EXECUTE = """def execute(self, requests):
    tensors = [pb_utils.get_input_tensor_by_name(request, "X") for request in requests]
    outputs = [pb_utils.Tensor("Y", tensor.as_numpy()) for tensor in tensors]
    return [pb_utils.InferenceResponse([output]) for output in outputs]
"""
SAGEMAKER = Target(default_model="m", image_version="26.05")
SERVER = Target.named("server", image_version="24.10")
OLD = Target(default_model="m", image_version="22.05")
_UTILS = "triton_python_backend_utils.py"
_COPY = "def deserialize_bytes_tensor(encoded): ...\n"
#: What follows is a model with input X and output Y, which another one calls.
_SCALE: Files = {"scale/config.pbtxt": HEAD, "scale/1/model.py": ""}


def model(*methods: str, execute: str = _EXECUTE, before: str = _IMPORTS) -> str:
    """A ``model.py`` with these methods beside ``execute``."""
    body = "\n".join((*methods, execute))
    return f"{before}class TritonPythonModel:\n{indent(body, '    ')}"


def _two(failing: str, fixed: str, config: str = HEAD) -> Example:
    """Two models with the same configuration."""
    return Example(
        one(config, **{"m/1/model.py": failing}), one(config, **{"m/1/model.py": fixed}), SERVER
    )


def _initialize(failing: str, fixed: str, config: str = HEAD) -> Example:
    """Two bodies of ``initialize``."""
    form = "def initialize(self, args):\n    {}\n"
    return _two(model(form.format(failing)), model(form.format(fixed)), config)


def _completion(failing: str, fixed: str) -> Example:
    """Two bodies of ``auto_complete_config``."""
    form = "@staticmethod\ndef auto_complete_config(config):\n    {}\n    return config\n"
    return _two(model(form.format(failing)), model(form.format(fixed)))


def _execute(failing: str, fixed: str, config: str = HEAD) -> Example:
    """Two bodies of ``execute``."""
    form = "def execute(self, requests):\n    {}\n"
    return _two(model(execute=form.format(failing)), model(execute=form.format(fixed)), config)


def _finalize(failing: str, fixed: str) -> Example:
    """Two bodies of ``finalize``, which no request runs."""
    form = "def finalize(self):\n    {}\n"
    return _two(model(form.format(failing)), model(form.format(fixed)))


def _reading(name: str) -> Example:
    """A model that reads a file in its version folder while it loads."""
    form = "def initialize(self, args):\n    self.labels = json.load(open({}))\n"
    beside = f'os.path.join(os.path.dirname(__file__), "{name}")'
    before = f"import os\n{_IMPORTS}"
    file = {f"m/1/{name}": "{}"}
    return Example(
        one(HEAD, **{"m/1/model.py": model(form.format(f'"{name}"'), before=before), **file}),
        one(HEAD, **{"m/1/model.py": model(form.format(beside), before=before), **file}),
        SERVER,
    )


def _request(arguments: str, method: str = "exec") -> str:
    return f"pb_utils.InferenceRequest({arguments}).{method}()"


def _calls(arguments: str, method: str = "exec") -> Files:
    """A model ``m`` that calls the model ``scale``."""
    execute = f"def execute(self, requests):\n    return [{_request(arguments, method)}]\n"
    files = {**_SCALE, "scale/1/model.py": model()}
    return one(HEAD, **{"m/1/model.py": model(execute=execute)}, **files)


def _calls_late(arguments: str) -> Files:
    """A model ``m`` that calls the model ``scale`` when Triton unloads it."""
    late = f"def finalize(self):\n    {_request(arguments)}\n"
    return one(HEAD, **{"m/1/model.py": model(late), **_SCALE, "scale/1/model.py": model()})


def _sends_to(name: str) -> Files:
    """A model ``m`` that calls another one, and a model ``scale``."""
    return _calls(f'model_name="{name}", requested_output_names=["Y"], inputs=[]')


_ARRAY = "np.zeros(4, np.float32)"
_RESPONSE = f'pb_utils.InferenceResponse([pb_utils.Tensor("Y", {_ARRAY})])'
_FAMILY = 'pb_utils.MetricFamily(name="n", description="d", kind=pb_utils.MetricFamily.GAUGE)'
_SCALED = 'model_name="scale", requested_output_names=["Y"], inputs=[]'
_FOLDER = "def finalize(self):\n    pb_utils.get_model_dir()\n"
_READS = """def execute(self, requests):
    responses = []
    for request in requests:
        array = pb_utils.get_input_tensor_by_name(request, "X").{}
        tensor = pb_utils.Tensor("Y", array.reshape(-1, 4))
        responses.append(pb_utils.InferenceResponse([tensor]))
    return responses
"""
_READS_X = _READS.format("as_numpy()")
_SENDS = f"requests[0].get_response_sender().send({_RESPONSE}, flags=1)"
_SENT = _request(
    f'model_name="scale", requested_output_names=["Y"], inputs=[pb_utils.Tensor("X", {_ARRAY})]'
)
_WITH_X = _SCALED.replace("[]", f'[pb_utils.Tensor("X", {_ARRAY})]')
_NAMES = 'def initialize(self, args):\n    self.names = ["X"]\n'
_DECOUPLED = f"{HEAD}model_transaction_policy {{ decoupled: true }}\n"
_INPUT = '{"name": "X", "data_type": "TYPE_FP32", "dims": [4]}'
_PARAMETER = 'parameters { key: "scale" value { string_value: "2" } }\n'
_READ = 'json.loads(args["model_config"])'

_MODULE = "triton_python_backend_utils"
_DATACLASS = f"from dataclasses import dataclass\n{_IMPORTS}@dataclass\n"


def _creates(failing: str, fixed: str) -> Example:
    """Two models that create a request to another model, and do not send it."""
    form = f"pb_utils.InferenceRequest({{}})\n    return [{_RESPONSE}]"
    return _execute(form.format(failing), form.format(fixed))


def _importing(failing: str, fixed: str) -> Example:
    """Two modules beside a model that imports ``double`` from them."""
    importing = model(before=f"from arithmetic import double\n{_IMPORTS}")
    return Example(
        one(HEAD, **{"m/1/model.py": importing, "m/1/arithmetic.py": failing}),
        one(HEAD, **{"m/1/model.py": importing, "m/1/arithmetic.py": fixed}),
        SERVER,
    )


def _adding(data_type: str) -> str:
    """A model that adds its tensors, the output with this data type."""
    return model(
        "@staticmethod\ndef auto_complete_config(config):\n"
        f"    config.set_max_batch_size(8)\n    config.add_input({_INPUT})\n"
        f'    config.add_output({{"name": "Y", "data_type": "{data_type}", "dims": [4]}})\n'
        "    return config\n"
    )


LOADING: dict[str, Example] = {
    "python-backend-module": Example(
        one(HEAD, **{"m/1/model.py": model(), f"m/1/{_UTILS}": "class Tensor: ...\n"}),
        one(HEAD, **{"m/1/model.py": model()}),
        SERVER,
    ),
    "python-relative-file-on-server": _reading("labels.json"),
    "python-syntax: of the compiler": _execute("await requests", f"return [{_RESPONSE}]"),
    "python-undefined-name": _initialize("self.scale = SCALE", "self.scale = 2"),
    "python-undefined-name: in the class": _two(
        model("kind = KIND_CPU\n"), model('kind = "KIND_CPU"\n')
    ),
    "python-backend-name": _initialize(
        "self.folder = pb_utils.get_model_folder()", "self.folder = pb_utils.get_model_dir()"
    ),
    "python-backend-name: annotation": _two(
        model(execute=_EXECUTE.replace("requests)", "requests) -> list[pb_utils.Tensor]")),
        model(execute=_EXECUTE.replace("requests)", 'requests) -> "list[pb_utils.Tensor]"')),
    ),
    "python-backend-name: import": _two(
        model(before="from triton_python_backend_utils import Tensor\n" + _IMPORTS),
        model(),
    ),
    "python-attribute": _initialize("self.sclae()", "self.scale = 2"),
    "python-initialize": _two(
        model("def initialize(self):\n    pass\n"), model("def initialize(self, args):\n    pass\n")
    ),
    "python-initialize: of the class": _two(
        model("def __init__(self, args):\n    pass\n"), model("def __init__(self):\n    pass\n")
    ),
    "python-auto-complete": _two(
        model("def auto_complete_config(self, config):\n    return config\n"),
        model("@staticmethod\ndef auto_complete_config(config):\n    return config\n"),
    ),
    "python-auto-complete: no return": _two(
        model(
            "@staticmethod\ndef auto_complete_config(config):\n    config.set_max_batch_size(8)\n"
        ),
        model("@staticmethod\ndef auto_complete_config(config):\n    return config\n"),
    ),
    "python-auto-complete: coroutine": _two(
        model("@staticmethod\nasync def auto_complete_config(config):\n    return config\n"),
        model("@staticmethod\ndef auto_complete_config(config):\n    return config\n"),
    ),
    "python-auto-complete-value": _completion(
        f"config.add_input({_INPUT.replace('FP32', 'FP16')})", f"config.add_input({_INPUT})"
    ),
    "python-auto-complete-value: dims": _completion(
        f"config.add_input({_INPUT.replace('4', '5')})", f"config.add_input({_INPUT})"
    ),
    "python-auto-complete-value: property": _completion(
        f"config.add_input({_INPUT.replace('data_type', 'datatype')})",
        f"config.add_input({_INPUT})",
    ),
    "python-auto-complete-value: no dims": _completion(
        'config.add_output({"name": "Y", "data_type": "TYPE_FP32"})',
        'config.add_output({"name": "Y", "data_type": "TYPE_FP32", "dims": [4]})',
    ),
    "python-auto-complete-value: batch size": _completion(
        "config.set_max_batch_size(4)", "config.set_max_batch_size(8)"
    ),
    "python-auto-complete-value: policy": _completion(
        'config.set_model_transaction_policy({"decouple": False})',
        'config.set_model_transaction_policy({"decoupled": False})',
    ),
    "python-auto-complete-value: method": _completion(
        "config.set_sequence_batching()", "config.set_dynamic_batching()"
    ),
    "python-initialize-argument": _initialize(
        'self.version = args["version"]', 'self.version = args["model_version"]'
    ),
    "python-initialize-argument: attribute": _initialize(
        "self.version = args.model_version", 'self.version = args["model_version"]'
    ),
    "python-initialize-argument: string": _initialize(
        'self.inputs = args["model_config"]["input"]', f'self.inputs = {_READ}["input"]'
    ),
    "python-config-value": _initialize(
        f'self.scale = {_READ}["parameters"]["sclae"]["string_value"]',
        f'self.scale = {_READ}["parameters"]["scale"]["string_value"]',
        HEAD + _PARAMETER,
    ),
    "python-config-value: tensor": _initialize(
        f'self.type = pb_utils.get_output_config_by_name({_READ}, "Z")["data_type"]',
        f'self.type = pb_utils.get_output_config_by_name({_READ}, "Y")["data_type"]',
    ),
    "python-unbound-name": _initialize(
        "self.scale = scale\n    scale = 2", "scale = 2\n    self.scale = scale"
    ),
    "python-unbound-name: method": _initialize("initialize(args)", "self.args = args"),
    "python-backend-name-absent": _two(
        model(before=f"from {_MODULE} import TritonPythonModel as Base\n{_IMPORTS}"), model()
    ),
    "python-backend-name-absent: logger": _initialize(
        "self.logger = pb_utils.logger", "self.logger = pb_utils.Logger"
    ),
    "python-class-creation": _two(
        model("scale: int\n", before=_DATACLASS), model("scale: int = 2\n", before=_DATACLASS)
    ),
    "python-completion-call": _completion(
        "config.set_max_batch_size(1, 8)", "config.set_max_batch_size(8)"
    ),
    "python-module-beside": _importing("def halve(x): ...\n", "def double(x): ...\n"),
    "python-module-beside: syntax": _importing("def double(x) ...\n", "def double(x): ...\n"),
    "python-call-at-load": Example(
        one(
            HEAD,
            **{
                "m/1/model.py": model(f"def initialize(self, args):\n    {_SENT}\n"),
                **_SCALE,
                "scale/1/model.py": model(),
            },
        ),
        one(HEAD, **{"m/1/model.py": model(), **_SCALE, "scale/1/model.py": model()}),
        SERVER,
    ),
}
"""Examples of what the server refuses to load, with complete models."""

EXAMPLES: dict[str, Example] = {
    **LOADING,
    "python-standard-library": _two(
        model(before=f"import tomllib\n{_IMPORTS}"), model(before=f"import json\n{_IMPORTS}")
    ),
    "python-undefined-name-in-function": _finalize("print(COUNT)", "print(0)"),
    "python-backend-name-in-function": _finalize(
        "print(pb_utils.InferenceRespones)", "print(pb_utils.InferenceResponse)"
    ),
    "python-backend-name-in-function: release": Example(
        one(HEAD, **{"m/1/model.py": model(_FOLDER)}),
        one(HEAD, **{"m/1/model.py": model(_FOLDER)}),
        OLD,
        SAGEMAKER,
    ),
    "python-attribute-in-method": _finalize("print(self.count)", "print(0)"),
    "python-completion-type": Example(
        one('backend: "python"\n', **{"m/1/model.py": _adding("FP32")}),
        one('backend: "python"\n', **{"m/1/model.py": _adding("TYPE_FP32")}),
        SERVER,
    ),
    "python-request-fails: bare method": _execute(
        "return execute(requests)", f"return [{_RESPONSE}]"
    ),
    "python-request-fails: unbound": _execute(
        f"found = [{_RESPONSE}]\n    del found\n    return found", f"return [{_RESPONSE}]"
    ),
    "python-object": _initialize(
        'pb_utils.Logger.info("loads")', 'pb_utils.Logger.log_info("loads")'
    ),
    "python-object: argument": _initialize(
        'self.type = pb_utils.triton_string_to_numpy("FP32")',
        'self.type = pb_utils.triton_string_to_numpy("TYPE_FP32")',
    ),
    "python-object: metric": _initialize(
        f"self.family = {_FAMILY}\n    self.metric = self.family.Metric(labels={{'n': 1}})",
        f"self.family = {_FAMILY}\n    self.metric = self.family.Metric(labels={{'n': '1'}})",
    ),
    "python-object: family": _initialize(
        f"self.family = {_FAMILY.replace('description', 'help')}", f"self.family = {_FAMILY}"
    ),
    "python-object-in-method": _finalize(
        'pb_utils.Logger.info("unloads")', 'pb_utils.Logger.log_info("unloads")'
    ),
    "python-request-fails": _two(model(execute=_READS.format("numpy()")), model(execute=_READS_X)),
    "python-request-fails: method": _two(
        model(execute=_READS.format("as_numpy")), model(execute=_READS_X)
    ),
    "python-request-fails: absent input": _two(
        model(execute=_READS_X.replace('"X"', '"Z"')), model(execute=_READS_X)
    ),
    "python-request-fails: name": _execute(
        f"return [{_RESPONSE} for _ in REQUESTS]", f"return [{_RESPONSE} for _ in requests]"
    ),
    "python-request-fails: attribute": _execute(
        f"return [{_RESPONSE} for _ in self.requests]", f"return [{_RESPONSE} for _ in requests]"
    ),
    "python-request-fails: name of the backend": _execute(
        "return [pb_utils.InferenceRespones([]) for _ in requests]",
        "return [pb_utils.InferenceResponse([]) for _ in requests]",
    ),
    "python-execute-signature": _two(
        model(execute=_EXECUTE.replace("self, ", "")), model(execute=_EXECUTE)
    ),
    "python-execute-result": _execute(f"return {_RESPONSE}", f"return [{_RESPONSE}]"),
    "python-execute-result: tensors": _execute(
        f'return [pb_utils.Tensor("Y", {_ARRAY})]', f"return [{_RESPONSE}]"
    ),
    "python-execute-result: dict": _execute(f'return {{"Y": {_ARRAY}}}', f"return [{_RESPONSE}]"),
    "python-execute-result: yield": _execute(f"yield {_RESPONSE}", f"return [{_RESPONSE}]"),
    "python-execute-result: decoupled": _execute(f"return [{_RESPONSE}]", _SENDS, _DECOUPLED),
    "python-response": _finalize(
        'pb_utils.InferenceResponse(error="absent")',
        'pb_utils.InferenceResponse(error=pb_utils.TritonError("absent"))',
    ),
    "python-request-fails: error": _execute(
        'return [pb_utils.InferenceResponse(error="absent") for _ in requests]',
        'return [pb_utils.InferenceResponse(error=pb_utils.TritonError("absent"))]',
    ),
    "python-request-fails: keyword": _execute(
        f'return [pb_utils.InferenceResponse(outputs=[pb_utils.Tensor("Y", {_ARRAY})])]',
        f'return [pb_utils.InferenceResponse(output_tensors=[pb_utils.Tensor("Y", {_ARRAY})])]',
    ),
    "python-request-fails: keywords of a tensor": _execute(
        f'return [pb_utils.InferenceResponse([pb_utils.Tensor(name="Y", data={_ARRAY})])]',
        f"return [{_RESPONSE}]",
    ),
    "python-request-fails: list": _execute(
        'return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", [1.0])])]',
        f"return [{_RESPONSE}]",
    ),
    "python-request-fails: request": Example(
        _calls('model_name="scale", outputs=["Y"], requested_output_names=["Y"], inputs=[]'),
        _calls('model_name="scale", requested_output_names=["Y"], inputs=[]'),
    ),
    "python-request-fails: incomplete request": Example(
        _calls('model_name="scale", inputs=[]'),
        _calls('model_name="scale", requested_output_names=["Y"], inputs=[]'),
    ),
    "python-request-fails: number as text": _creates(
        f"{_WITH_X}, request_id=1", f'{_WITH_X}, request_id="1"'
    ),
    "python-request-fails: text as list": _creates(_WITH_X.replace('["Y"]', '"Y"'), _WITH_X),
    "python-request-fails: tensor as list": _creates(
        _WITH_X.replace("[pb_utils", "pb_utils").replace(")]", ")"), _WITH_X
    ),
    "python-request-fails: output as list": _execute(
        f'tensor = pb_utils.Tensor("Y", {_ARRAY})\n'
        "    return [pb_utils.InferenceResponse(output_tensors=tensor)]",
        f'tensor = pb_utils.Tensor("Y", {_ARRAY})\n'
        "    return [pb_utils.InferenceResponse(output_tensors=[tensor])]",
    ),
    "python-request-fails: list of names": _two(
        model(_NAMES, execute=_READS_X.replace('"X"', "self.names")),
        model(_NAMES, execute=_READS_X.replace('"X"', "self.names[0]")),
    ),
    "python-request-fails: name in a list": _two(
        model(_NAMES.replace("X", "Z"), execute=_READS_X.replace('"X"', "self.names[0]")),
        model(_NAMES, execute=_READS_X.replace('"X"', "self.names[0]")),
    ),
    "python-server-at-load": replace(
        _initialize('pb_utils.is_model_ready("scale")', "pass"), target=SAGEMAKER
    ),
    "python-server-at-start": _initialize('pb_utils.is_model_ready("scale")', "pass"),
    "python-backend-module-copy": Example(
        one(HEAD, **{"m/1/model.py": model(), f"m/{_UTILS}": _COPY}),
        one(HEAD, **{"m/1/model.py": model()}),
        SERVER,
    ),
    "python-relative-file": replace(_reading("labels.json"), target=SAGEMAKER),
    "python-request-fails: input": _two(
        model(execute=_READS_X.replace('"X"', '["X"]')), model(execute=_READS_X)
    ),
    "python-metric-family": _initialize(
        f"family = {_FAMILY}\n    self.metric = family.Metric(labels={{}})",
        f"self.family = {_FAMILY}\n    self.metric = self.family.Metric(labels={{}})",
    ),
    "python-metric-family: nothing": _initialize(
        f"self.metric = {_FAMILY}.Metric(labels={{}})",
        f"self.family = {_FAMILY}\n    self.metric = self.family.Metric(labels={{}})",
    ),
    "python-response-sender": Example(
        one(
            _DECOUPLED,
            **{"m/1/model.py": model(execute=f"def execute(self, requests):\n    {_SENDS}\n")},
        ),
        one(
            _DECOUPLED,
            **{"m/1/model.py": model(execute=f"def execute(self, requests):\n    {_SENDS}\n")},
        ),
        Target.named("server", image_version="22.04"),
        Target.named("server", image_version="22.05"),
    ),
    "python-request-fails: called output": Example(
        _calls('model_name="scale", requested_output_names=["Z"], inputs=[]'),
        _calls('model_name="scale", requested_output_names=["Y"], inputs=[]'),
    ),
    "python-called-tensor": Example(
        _calls_late('model_name="scale", requested_output_names=["Z"], inputs=[]'),
        _calls_late('model_name="scale", requested_output_names=["Y"], inputs=[]'),
    ),
    "python-request-fails: called version": Example(
        _calls('model_name="scale", model_version=3, requested_output_names=["Y"], inputs=[]'),
        _calls('model_name="scale", requested_output_names=["Y"], inputs=[]'),
    ),
    "python-request-fails: event loop": Example(
        _calls(_SCALED, "async_exec"),
        _calls(_SCALED),
    ),
    "python-request-fails: called input": Example(
        _calls(
            'model_name="scale", requested_output_names=["Y"], '
            f'inputs=[pb_utils.Tensor("image", {_ARRAY})]'
        ),
        _calls(
            'model_name="scale", requested_output_names=["Y"], '
            f'inputs=[pb_utils.Tensor("X", {_ARRAY})]'
        ),
    ),
    "python-called-model-elsewhere": Example(
        _sends_to("scaled"), _sends_to("scale"), Target.named("server")
    ),
}
