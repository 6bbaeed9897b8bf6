"""Examples of the checks of Python models."""

# Configurations read best unbroken.

from __future__ import annotations

import gzip
import io
import lzma
import tarfile

from check_examples.repositories import (
    CLASS,
    ENVIRONMENT,
    ENVIRONMENT_HERE,
    HEAD,
    HERE,
    IO,
    TWO_OUTPUTS,
    Example,
    Files,
    added,
    one,
)
from triton_model_check.model_config.target import Target

_CALL = """import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        tensors = dict(inputs=requests[0].inputs(), requested_output_names=["Y"])
        request = pb_utils.InferenceRequest(model_name={}, **tensors)
        return [request.exec()]
"""

_TENSORS = """import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def execute(self, requests):
        tensors = [pb_utils.get_input_tensor_by_name(request, "{}") for request in requests]
        outputs = [pb_utils.Tensor("{}", tensor.as_numpy()) for tensor in tensors]
        return [pb_utils.InferenceResponse([output]) for output in outputs]
"""
_SENDS = "requests[0].get_response_sender().send(flags=1)"
_EXECUTE = "class TritonPythonModel:\n    def execute(self, requests):\n        {}\n"


def _calling(name: str) -> Files:
    """A model ``m`` that calls another one, and a model ``scale``."""
    scale = {"scale/config.pbtxt": HEAD, "scale/1/model.py": CLASS}
    return one(HEAD, **{"m/1/model.py": _CALL.format(name)}, **scale)


_ACTIVATE: Files = {"m/env/bin/activate": ""}


_WHEEL = "lib/python3.12/site-packages/tokenizers-0.22.1.dist-info/WHEEL"
#: What lets Python find the packages of an environment.
PYTHON = ("bin/activate", "bin/python3 -> /usr/bin/python3", "pyvenv.cfg")


def packed(*names: str, size: int = 0, text: str = "") -> bytes:
    """A ``.tar`` with files of these names, and without the content of a last one of ``size``
    bytes.

    The files are empty, or contain ``text``. A name such as ``"lib64 -> lib"`` is a link.
    """
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for each in names:
            name, _, target = each.partition(" -> ")
            member = tarfile.TarInfo(name)
            if target:
                member.type, member.linkname = tarfile.SYMTYPE, target
            else:
                member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
        if size:
            large = tarfile.TarInfo("lib/large")
            large.size = size
            archive.addfile(large)
    return file.getvalue()


def _environment(failing: bytes, fixed: bytes, target: Target | None = None) -> Example:
    return Example(
        {**ENVIRONMENT_HERE, "m/env": failing}, {**ENVIRONMENT_HERE, "m/env": fixed}, target
    )


EXAMPLES: dict[str, Example] = {
    "python-model-file": Example({"m/config.pbtxt": HEAD, "m/1/models.py": CLASS}, one(HEAD)),
    "python-name-shell": Example(
        {name.replace("m/", "my model/", 1): text for name, text in one(HEAD).items()},
        one(HEAD),
        Target("server"),
    ),
    "python-name-shell: file": Example(
        {
            "m/config.pbtxt": f'{HEAD}default_model_filename: "my model.py"\n',
            "m/1/my model.py": CLASS,
        },
        one(HEAD),
    ),
    "python-syntax": Example(one(HEAD, **{"m/1/model.py": CLASS + "def\n"}), one(HEAD)),
    "python-class": Example(one(HEAD, **{"m/1/model.py": CLASS.replace("Triton", "")}), one(HEAD)),
    "python-class: the only class": Example(
        one(HEAD, **{"m/1/model.py": CLASS.replace("TritonPythonModel", "Scaler")}), one(HEAD)
    ),
    "python-execute": Example(
        one(HEAD, **{"m/1/model.py": CLASS.replace("execute", "exec")}), one(HEAD)
    ),
    "python-execute-returns-none": Example(
        one(HEAD, **{"m/1/model.py": _EXECUTE.format("if requests:\n            return [None]")}),
        one(HEAD, **{"m/1/model.py": _EXECUTE.format("return [None for request in requests]")}),
    ),
    "python-execute-returns-none: sender": Example(
        one(HEAD, **{"m/1/model.py": _EXECUTE.format(_SENDS)}),
        one(
            f"{HEAD}model_transaction_policy {{ decoupled: true }}\n",
            **{"m/1/model.py": _EXECUTE.format(_SENDS)},
        ),
        Target.named("server", image_version="24.05"),
    ),
    "python-environment": Example(ENVIRONMENT_HERE, {**ENVIRONMENT_HERE, **_ACTIVATE}),
    "python-environment: left out": Example(
        {
            **one(HEAD + ENVIRONMENT % "$$TRITON_MODEL_DIRECTORY/../env.tar"),
            "env.tar": packed("bin/activate"),
        },
        {
            **one(HEAD + ENVIRONMENT % "$$TRITON_MODEL_DIRECTORY/env.tar"),
            "m/env.tar": packed("bin/activate"),
        },
        Target(default_model="m"),
    ),
    "python-environment-content": Example(
        {**ENVIRONMENT_HERE, "m/env": None}, {**ENVIRONMENT_HERE, **_ACTIVATE}
    ),
    "python-environment-content: in a folder": _environment(
        packed("hf/bin/activate"), packed("bin/activate")
    ),
    "python-environment-content: format": _environment(
        lzma.compress(packed("bin/activate")), gzip.compress(packed("./bin/activate"))
    ),
    "python-environment-content: no archive": _environment(
        b"<!DOCTYPE html>\n", gzip.compress(packed("bin/activate"))
    ),
    "python-environment-elsewhere": Example(
        one(HEAD + ENVIRONMENT % "/opt/env.tar.gz"),
        {**ENVIRONMENT_HERE, **_ACTIVATE},
        Target(default_model="m"),
    ),
    "python-environment-numpy": _environment(
        packed("bin/activate", "lib/python3.10/site-packages/numpy-2.1.3.dist-info/METADATA"),
        packed("bin/activate", "lib/python3.10/site-packages/numpy-1.26.4.dist-info/METADATA"),
        Target(default_model="m", image_version="24.09"),
    ),
    "python-environment-interpreter": _environment(
        packed("bin/activate", "lib/python3.12/site-packages/regex/__init__.py"),
        packed(*PYTHON, "lib/python3.12/site-packages/regex/__init__.py"),
        Target(default_model="m", image_version="26.05"),
    ),
    "python-environment-cuda": _environment(
        packed("bin/activate", "lib/python3.12/site-packages/torch-2.9.0+cu128.dist-info/METADATA"),
        packed("bin/activate", "lib/python3.12/site-packages/torch-2.9.0+cpu.dist-info/METADATA"),
        Target(default_model="m", gpu_count=0),
    ),
    "python-environment-libraries": _environment(
        packed(
            "bin/activate", "lib/python3.12/site-packages/opencv_python-4.12.0.dist-info/METADATA"
        ),
        packed(
            "bin/activate",
            "lib/python3.12/site-packages/opencv_python_headless-4.12.0.dist-info/METADATA",
        ),
        Target(default_model="m"),
    ),
    "python-environment-size": _environment(
        packed("bin/activate", size=2 * 10**9 + 1), packed("bin/activate", size=2 * 10**9)
    ),
    "python-environment-copies": Example(
        {**ENVIRONMENT_HERE, "m/env": packed("bin/activate", size=600 * 10**6)},
        {**ENVIRONMENT_HERE, "m/env": packed("bin/activate", size=600 * 10**6)},
        Target("sagemaker-multi-model", storage_gb=1),
        Target("sagemaker-multi-model", storage_gb=30),
    ),
    "python-environment-release": Example(
        {**ENVIRONMENT_HERE, "m/env": packed("bin/activate")},
        {**ENVIRONMENT_HERE, "m/env": packed("bin/activate")},
        Target(default_model="m", image_version="21.08"),
        Target(default_model="m", image_version="22.05"),
    ),
    "python-environment-release: folder": Example(
        {**ENVIRONMENT_HERE, **_ACTIVATE},
        {**ENVIRONMENT_HERE, "m/env": packed("bin/activate")},
        Target(default_model="m", image_version="22.05"),
    ),
    "python-environment-folder": Example(
        {**ENVIRONMENT_HERE, **_ACTIVATE},
        {**ENVIRONMENT_HERE, "m/env": packed("bin/activate")},
        Target(default_model="m", is_uncompressed=True),
    ),
    "python-environment-members": _environment(
        packed(*PYTHON, "bin/../lib/python3.12/site-packages/regex.py"),
        packed(*PYTHON, "lib/python3.12/site-packages/regex.py"),
        Target(default_model="m", image_version="26.05"),
    ),
    "python-environment-members: absolute": _environment(
        packed(*PYTHON, "/lib/python3.12/site-packages/regex.py"),
        packed(*PYTHON, "./lib/python3.12/site-packages/regex.py"),
        Target(default_model="m", image_version="26.05"),
    ),
    "python-environment-members: through a link": _environment(
        packed(*PYTHON, "lib64 -> lib", "lib64/python3.12/site-packages/regex.py"),
        packed(*PYTHON, "lib64 -> lib", "lib/python3.12/site-packages/regex.py"),
        Target(default_model="m", image_version="26.05"),
    ),
    "python-environment-compiled": _environment(
        packed(*PYTHON, "lib/python3.12/site-packages/regex/_regex.cpython-312-darwin.so"),
        packed(
            *PYTHON, "lib/python3.12/site-packages/regex/_regex.cpython-312-x86_64-linux-gnu.so"
        ),
        Target(default_model="m", image_version="26.05"),
    ),
    "python-environment-compiled: wheel": _environment(
        packed(*PYTHON, _WHEEL, text="Tag: cp39-abi3-macosx_11_0_arm64\n"),
        packed(
            *PYTHON,
            _WHEEL,
            text="Tag: cp39-abi3-manylinux_2_17_x86_64\nTag: cp39-abi3-linux_x86_64\n",
        ),
        Target(default_model="m", image_version="26.05"),
    ),
    "python-environment-pythonpath": Example(
        {**ENVIRONMENT_HERE, **_ACTIVATE},
        {**ENVIRONMENT_HERE, **_ACTIVATE},
        Target(default_model="m", python_path="/opt/packages"),
        Target(default_model="m"),
    ),
    "python-environment-relative": Example(
        one(HEAD + ENVIRONMENT % "env.tar.gz"),
        {**ENVIRONMENT_HERE, **_ACTIVATE},
        Target(default_model="m"),
    ),
    "python-environment-working-directory": Example(
        {**one(HEAD + ENVIRONMENT % "env.tar"), "m/env.tar": packed(*PYTHON)},
        {
            **one(HEAD + ENVIRONMENT % "$$TRITON_MODEL_DIRECTORY/env.tar"),
            "m/env.tar": packed(*PYTHON),
        },
        Target.named("server", image_version="24.10"),
    ),
    "python-environment-version": Example(
        {
            **ENVIRONMENT_HERE,
            "m/env": packed(*PYTHON, "lib/python3.8/site-packages/regex/__init__.py"),
        },
        {
            **ENVIRONMENT_HERE,
            "m/env": packed(*PYTHON, "lib/python3.12/site-packages/regex/__init__.py"),
        },
        Target(default_model="m", image_version="26.05"),
    ),
    "python-cpu-only-inputs": added(
        'parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value { string_value: "true" } }\n',
        'parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value { string_value: "yes" } }\n',
    ),
    "python-called-model": Example(
        _calling('"scaled"'), _calling('"scale"'), Target(default_model="m")
    ),
    "python-called-model-unknown": Example(
        _calling("NAMES[0]"), _calling('"scale"'), Target(default_model="m")
    ),
    "python-calls-on-multi-model-endpoint": Example(
        _calling('"scale"'),
        _calling('"scale"'),
        Target("sagemaker-multi-model"),
        fixed_target=Target(default_model="m"),
    ),
    "python-output-absent": Example(
        one(HEAD.replace(IO, TWO_OUTPUTS), **{"m/1/model.py": _TENSORS.format("X", "Y")}),
        one(HEAD, **{"m/1/model.py": _TENSORS.format("X", "Y")}),
    ),
    "python-tensor-name": Example(
        one(HEAD, **{"m/1/model.py": _TENSORS.format("X", "id")}),
        one(HEAD, **{"m/1/model.py": _TENSORS.format("X", "Y")}),
    ),
    "python-tensor-name: input": Example(
        one(HEAD, **{"m/1/model.py": _TENSORS.format("image", "Y")}),
        one(HEAD, **{"m/1/model.py": _TENSORS.format("X", "Y")}),
    ),
    "python-import": Example(
        one(HEAD, **{"m/1/model.py": "import triton_python_backend_util as pb_utils\n" + CLASS}),
        one(HEAD, **{"m/1/model.py": "import triton_python_backend_utils as pb_utils\n" + CLASS}),
    ),
    "python-import-missing": Example(
        one(HEAD, **{"m/1/model.py": "import transformers\n" + CLASS}),
        {
            **one(HEAD + ENVIRONMENT % HERE, **{"m/1/model.py": "import transformers\n" + CLASS}),
            "m/env": packed(*PYTHON, "lib/python3.12/site-packages/transformers/__init__.py"),
        },
        Target(default_model="m", image_version="26.05"),
    ),
    "python-no-tensors": Example(one(""), one(HEAD)),
    "python-no-tensors: config.pbtxt in the version folder": Example(
        {"m/1/config.pbtxt": HEAD, "m/1/model.py": CLASS}, one(HEAD)
    ),
}
