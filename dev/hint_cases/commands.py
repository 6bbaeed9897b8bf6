"""For the hints of commands: words that fail, and how a reader follows what is printed,
from its text alone.
"""

# Command lines read best unbroken.
# ruff: noqa: E501

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from check_examples.onnx_models import relu

_CODE = (
    "class TritonPythonModel:\n    def execute(self, "
    "requests):\n        return [None for _ in requests]\n"
)
_TENSORS = (
    'input { name: "X" data_type: TYPE_FP32 dims: 4 } output { name: '
    '"Y" data_type: TYPE_FP32 dims: 4 }\n'
)
_TYPE = "AWS::SageMaker::"
_VARIANT = {
    "VariantName": "Main",
    "ModelName": "m",
    "InitialInstanceCount": 2,
    "InstanceType": "ml.g5.xlarge",
}
_TEMPLATE = {
    "Resources": {
        "Endpoint": {
            "Type": f"{_TYPE}Endpoint",
            "Properties": {
                "EndpointName": "vision",
                "EndpointConfigName": {"Fn::GetAtt": ["Config", "EndpointConfigName"]},
            },
        },
        "Config": {
            "Type": f"{_TYPE}EndpointConfig",
            "Properties": {"ProductionVariants": [_VARIANT]},
        },
    }
}
#: The end of the arguments of commands that call a server: no one listens there.
_NO_SERVER = "check the address, and that a server listens there"
_SERVER = "http://127.0.0.1:9"
_SPIKE = "simulate --pattern spike --throughput 1000 --target 300"
_LEVELS, _BOUNDS = "--low 100 --high 500", "--min-capacity 1 --max-capacity 3"
_COMPILE = "compile resnet.onnx --dry-run"
_ROLE = "--role arn:aws:iam::111122223333:role/r"
_G5, _BATCH = "--instance-type ml.g5.xlarge", "--max-batch-size 8"
_PLAN = "plan bench.csv --requests-per-second 50"
_JOB = (
    f"plan recommender request --job-name bert {_ROLE.replace('--role', '--role-arn')} "
    "--model-name bert -o job.json"
)
_TUNE = "tune models --latency-ms 100 -o tuned"


@dataclass(frozen=True)
class Case:
    """A command that fails.

    Args:
        words: The words after the name of the program.
        code: The exit code after the hint was followed.
        output: What is printed then.
        text: What the hint says, where no words can be derived from it.
        then: The words that follow this text.
        program: The name of the program.
    """

    words: str
    code: int = 0
    output: str = ""
    text: str = ""
    then: str = ""
    program: str = "constructs-triton"


def write_files(folder: Path) -> None:
    """Write the models, tables and templates that the cases name."""
    files: dict[str, str | bytes] = {
        "resnet.onnx": relu(("n", 3)),
        "model.py": _CODE,
        "Shop.template.json": json.dumps(_TEMPLATE),
        "bench.csv": (
            "configuration,instance_type,invocations_per_minute,latency_ms\n"
            "a,ml.g5.xlarge,1335,400\n"
        ),
        "fleet.csv": "model,memory_mib,load_seconds,count\nresnet,380,1.6,80\n",
        "one/b/config.pbtxt": f'backend: "python"\n{_TENSORS}',
        "one/b/1/model.py": _CODE,
        "requirements.txt": "pure\n",
    }
    for name in "ab":
        files[f"models/{name}/config.pbtxt"] = f'backend: "python" max_batch_size: 8\n{_TENSORS}'
        files[f"models/{name}/1/model.py"] = _CODE
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


_COMMAND = re.compile(r"`constructs-triton ([^`]*)`")
_WRONG = re.compile(
    r"""got (["']?)(?P<got>[^"']+?)\1(?: \([^)]*\))?(?:, which [^;]*)?(?:; |$)|argument (?P<option>--\S+): there|no endpoint "(?P<name>[^"]+)\""""
)
_MEANT = re.compile(r'did you mean "([^"]+)"\?')
_OPTIONS = re.compile(
    r"(?:for example|such as|(?:add|use|write|write it as)) (--[a-z].*?)(?:[,;] | to send it|$)"
)
_VALUE = re.compile(
    r"\b(?:write for example|write it as|write|use for example|use|raise it to|choose from|number, from) \"?(\S+?)\"?(?=[,;]?(?:\s|$))"
)
_WITHOUT = re.compile(r"write it without (\S+)")
_REMOVED = re.compile(r"; leave out (--\S+)|(--\S+): .*; (?:remove it|leave it out)$")


def followed(words: list[str], message: str) -> list[str]:
    """Return the words that a reader types after the message: its command,
    or the words with its correction.
    """
    hint = message.strip().splitlines()[-1]
    wrong = _WRONG.search(hint)
    if found := _COMMAND.search(hint):
        return shlex.split(found[1])
    if found := _REMOVED.search(hint):
        return _without(words, found[1] or found[2])
    if found := (None if _MEANT.search(hint) else _OPTIONS.search(hint)):
        given = shlex.split(found[1])
        for option in (each.partition("=")[0] for each in given if each.startswith("--")):
            words = _without(words, option)
        return [*words, *given]
    assert wrong, hint
    old = wrong["got"] or wrong["option"] or wrong["name"]
    without = _WITHOUT.search(hint)
    value = _MEANT.search(hint) or _VALUE.search(hint)
    assert without or value, hint
    new = old.replace(without[1], "") if without else value[1] if value else ""
    assert any(old in each for each in words), (old, words)
    return [
        new if each == old else each if old in words else each.replace(old, new) for each in words
    ]


def _without(words: list[str], option: str) -> list[str]:
    """Return the words without an option and its value."""
    if option not in words:
        return words
    index = words.index(option)
    has_value = index + 1 < len(words) and not words[index + 1].startswith("-")
    return words[:index] + words[index + 1 + has_value :]


CASES = (
    # check, config and pack
    Case("chek models", output="0 errors"),
    Case("check models --taget server", output="0 errors"),
    Case("check models --target kubernetis", output="0 errors"),
    Case("check models --instance-type ml.g5.xlarg", output="0 errors"),
    Case("check models --image-version 26.5", output="0 errors"),
    Case("check models --taget docker", output="0 errors", program="triton-model-check"),
    Case("check models --unlike-any", output="usage: constructs-triton check"),
    Case(
        "check modles",
        output="0 errors",
        text="pass a folder that has one subfolder for each model",
        then="check models",
    ),
    Case("config shwo models/a", output="TYPE_FP32"),
    Case("config show models/a --model a", output="TYPE_FP32"),
    Case("config show one --mermaid", output="TYPE_FP32"),
    Case(
        "config show models --model c",
        output="TYPE_FP32",
        text='its models are "a" and "b"',
        then="config show models --model a",
    ),
    Case(
        "config show modles",
        output="TYPE_FP32",
        text="pass the path of a config.pbtxt or of a model's folder",
        then="config show models/a/config.pbtxt",
    ),
    Case(
        "pack models --output archives --model c",
        output="archives",
        text='its models are "a" and "b"',
        then="pack models --output archives --model b",
    ),
    Case(
        "pack models/a --output archives",
        output="archives",
        text="pass its parent folder",
        then="pack models --output archives",
    ),
    Case(
        "pack models",
        output="archives",
        text="the following arguments are required: -o/--output",
        then="pack models --output archives",
    ),
    # model
    Case("model nwe resnet.onnx", output="wrote models/resnet/config.pbtxt"),
    Case(
        "model new net --backend pyton --input X:FP32:4 --output Y:FP32:4",
        output="wrote models/net/config.pbtxt",
    ),
    Case(
        "model new resnt.onnx",
        output="wrote models/resnet",
        text="pass the path of a model file",
        then="model new resnet.onnx",
    ),
    Case("model new model.py --name net", output="wrote models/net"),
    Case("model new --backend python net", output="wrote models/net"),
    Case("model new resnet.onnx --shape X=3", output="wrote models/resnet"),
    Case("model new resnet.onnx --dynamic-batching 5", output="wrote models/resnet"),
    Case("model new resnet.onnx --parameter a", output="wrote models/resnet"),
    Case("model new pipe --step a", output="wrote models/pipe"),
    Case("model new --backend ensemble pipe --step a:X", output="wrote models/pipe"),
    Case(
        "model new --backend ensemble pipe --step a --step b",
        output="wrote models/pipe",
        text="for example --step b:Y=Y_2",
        then="model new --backend ensemble pipe --step a --step b:Y=Y_2",
    ),
    Case(
        "model new --backend ensemble pipe --step a --input X:FP32:4",
        output="wrote models/pipe",
        text="leave the other options out",
        then="model new --backend ensemble pipe --step a",
    ),
    Case(
        "model new --backend ensemble pipe --step a:Z=q",
        output="wrote models/pipe",
        text='its tensors are "X" and "Y"',
        then="model new --backend ensemble pipe --step a:X=q",
    ),
    Case(
        "model new --backend python net --input X:FP33:4 --output Y:FP32:4",
        output="wrote models/net",
        text="use one of BOOL, UINT8",
        then="model new --backend python net --input X:BOOL:4 --output Y:FP32:4",
    ),
    Case(
        "model new --backend python net --input X:BF16:4 --output Y:FP32:4",
        output="wrote models/net",
        text="use FP32, or",
        then="model new --backend python net --input X:FP32:4 --output Y:FP32:4",
    ),
    Case(
        "model new --backend python net --name net --input X:FP32:4 --output Y:FP32:4",
        output="wrote models/net",
        text="leave one of them out",
        then="model new --backend python net --input X:FP32:4 --output Y:FP32:4",
    ),
    Case(
        "model new net --decoupled --input X:FP32:4 --output Y:FP32:4",
        output="wrote models/net",
        text="add --backend python with the name of the model in place of a file",
        then="model new --backend python net --decoupled --input X:FP32:4 --output Y:FP32:4",
    ),
    # facts, project, completion, doctor
    Case("facts image --region eu-wst-1", output="sagemaker-tritonserver"),
    Case("facts image --region eu-west-1 --version 26.5", output="sagemaker-tritonserver"),
    Case("facts image --region eu-west-1 --version 19.01", output="sagemaker-tritonserver"),
    Case("facts instnce ml.g5.xlarge", output="ml.g5.xlarge"),
    Case("facts instance ml.g5.xlarg", output="ml.g5.xlarge"),
    Case("facts environment --version 26-05", output="keyword"),
    Case("project new shop --example digts", output="next: cd"),
    Case("project new shop --example multimodel", output="next: cd"),
    Case(
        "project new 2shop",
        output="next: cd",
        text="it must begin with a letter",
        then="project new shop",
    ),
    Case(
        "project new models", output="next: cd", text="choose another name", then="project new shop"
    ),
    Case("completion fihs", output="constructs-triton"),
    # simulate, plan, cost, graph
    Case(f"{_SPIKE.replace('spike', 'spkie')} {_LEVELS} {_BOUNDS}", output="requests"),
    Case(f"{_SPIKE} {_LEVELS} {_BOUNDS} --schedule 7", output="requests"),
    Case(
        f"{_SPIKE} --low 1,000 --high 5000 {_BOUNDS}",
        output="requests",
        text='write digits and a decimal point, like "1335"',
        then=f"{_SPIKE} --low 1000 --high 5000 {_BOUNDS}",
    ),
    Case(
        f"{_SPIKE} {_BOUNDS}",
        output="requests",
        text="set --low and --high to invocations per minute",
        then=f"{_SPIKE} {_LEVELS} {_BOUNDS}",
    ),
    Case(
        f"{_SPIKE} {_LEVELS}",
        output="requests",
        text="set --min-capacity and --max-capacity",
        then=f"{_SPIKE} {_LEVELS} {_BOUNDS}",
    ),
    Case(
        f"{_SPIKE} --low 500 --high 100 {_BOUNDS}",
        output="requests",
        text="swap them",
        then=f"{_SPIKE} {_LEVELS} {_BOUNDS}",
    ),
    Case(
        f"{_SPIKE} {_LEVELS} --min-capacity 5 --max-capacity 3",
        output="requests",
        text="change one of them",
        then=f"{_SPIKE} {_LEVELS} --min-capacity 1 --max-capacity 3",
    ),
    Case(f"{_PLAN} --latency-ms 500 --price ml.g5.xlarge", output="cheapest"),
    Case(
        f"{_PLAN} --latency-ms 500 --price ml.g5.xlarge=1 --min-capacity 0",
        output="cheapest",
        text="use 1, or 2",
        then=f"{_PLAN} --latency-ms 500 --price ml.g5.xlarge=1 --min-capacity 1",
    ),
    Case(
        f"{_PLAN} --latency-ms 500 --price ml.g5.xlarge=1 ml.g5.xlarge=2",
        output="cheapest",
        text="remove one of them",
        then=f"{_PLAN} --latency-ms 500 --price ml.g5.xlarge=1",
    ),
    Case(
        f"{_PLAN} --latency-ms 500",
        output="cheapest",
        text="add it (on the command line with --price)",
        then=f"{_PLAN} --latency-ms 500 --price ml.g5.xlarge=1",
    ),
    Case(
        f"{_PLAN} --latency-ms 100 --price ml.g5.xlarge=1",
        output="cheapest",
        text="set latency_ms to 400 or more",
        then=f"{_PLAN} --latency-ms 400 --price ml.g5.xlarge=1",
    ),
    Case(f"simulate models fleet.csv {_G5} --requests-per-second 20 --zifp 1", output="hit rate"),
    Case(
        "simulate models fleet.csv --instance-type ml.g5.xlarg --requests-per-second 20",
        output="hit rate",
    ),
    Case(
        "cost Shop.template.json --price ml.g5.xlarge=1 --requests-per-second visoin=5",
        output="per hour",
    ),
    Case(
        "cost Shop.template.json --price ml.g6.xlarge=1",
        output="per hour",
        text="add --price ml.g5.xlarge=PRICE",
        then="cost Shop.template.json --price ml.g5.xlarge=1",
    ),
    Case(
        "cost Shop.template.json --price ml.g5.xlarge=1 --requests-per-second vision=0",
        output="per hour",
        text="give the mean rate",
        then="cost Shop.template.json --price ml.g5.xlarge=1 --requests-per-second vision=5",
    ),
    Case("grph Shop.template.json", output="end"),
    # compile --dry-run, plan recommender
    Case(f"{_COMPILE} {_G5} {_ROLE}", output="Tensor"),
    Case(
        f"{_COMPILE} {_ROLE} {_BATCH}",
        output="Tensor",
        text="set the instance type of the endpoint, for example ml.g5.xlarge",
        then=f"{_COMPILE} {_ROLE} {_BATCH} {_G5}",
    ),
    Case(f"{_COMPILE} --instance-type ml.c5.xlarge {_ROLE} {_BATCH}", output="Tensor"),
    Case(f"{_COMPILE} --instance-type ml.g5.xlarg {_ROLE} {_BATCH}", output="Tensor"),
    Case(f"{_COMPILE} {_G5} --role r {_BATCH}", output="Tensor"),
    Case(f"{_COMPILE} {_G5} {_ROLE} {_BATCH} --bucket s3://plans", output="Tensor"),
    Case(f"{_COMPILE} {_G5} {_ROLE} {_BATCH} --prefix plans", output="Tensor"),
    Case(f"{_COMPILE} {_G5} {_ROLE} {_BATCH} --tag a", output="Tensor"),
    Case(
        f"{_COMPILE} --instance-type ml.g4dn.xlarge {_ROLE} "
        f"{_BATCH} --image-version 25.09 --precision bf16",
        output="Tensor",
    ),
    Case(
        f"{_COMPILE} {_G5} {_ROLE} {_BATCH} --trtexec-argument profilingVerbosity=detailed",
        output="Tensor",
    ),
    Case(
        f"{_COMPILE} --instance-type ml.p5.48xlarge {_ROLE} {_BATCH} --job processing",
        output="Tensor",
    ),
    Case(
        f"{_COMPILE} {_G5} {_ROLE} {_BATCH} --opt-batch-size 16",
        output="Tensor",
        text="lower it",
        then=f"{_COMPILE} {_G5} {_ROLE} {_BATCH} --opt-batch-size 8",
    ),
    Case(f"{_JOB} {_G5} --phase 2:2", output="wrote job.json"),
    Case(f"{_JOB} {_G5} --env A", output="wrote job.json"),
    Case(_JOB, output="wrote job.json", text="set 1 to 10 instance types", then=f"{_JOB} {_G5}"),
    Case(
        f"{_JOB} --job-type Default --latency-ms 5",
        output="wrote job.json",
        text="remove --latency-ms",
        then=f"{_JOB} --job-type Default",
    ),
    # the arguments of commands that call a server
    Case(f"load-test {_SERVER} --input X=1,2", 2, _NO_SERVER),
    Case(f"load-test {_SERVER} --input X", output="NAME=VALUE"),
    Case(f"load-test {_SERVER} --random X", 2, _NO_SERVER),
    Case(f"load-test {_SERVER} --random X=FP32[1,4] --index s3://a/b", 2, _NO_SERVER),
    Case(
        f"load-test {_SERVER} --random X=FP32[1,4] --goodput first_token=200ms",
        2,
        _NO_SERVER,
        "remove it",
        f"load-test {_SERVER} --random X=FP32[1,4]",
    ),
    Case(
        f"load-test {_SERVER} --random --repository models",
        2,
        _NO_SERVER,
        "set --model",
        f"load-test {_SERVER} --random --repository models --model a",
    ),
    Case(
        f"load-test {_SERVER} --random X=FP32[1,4] --rates 0",
        2,
        _NO_SERVER,
        "raise it",
        f"load-test {_SERVER} --random X=FP32[1,4] --rates 1",
    ),
    Case(f"invoke {_SERVER} --input X=1,2", 2, _NO_SERVER),
    Case(f"invoke {_SERVER} --input X=1,2:FP33", 2, _NO_SERVER),
    Case(
        f"invoke {_SERVER} --input X=a:FP32",
        2,
        _NO_SERVER,
        "write 1,2 or",
        f"invoke {_SERVER} --input X=1,2:FP32",
    ),
    Case(f"{_TUNE}", 2, "add --yes", "name one of them", f"{_TUNE} --model a"),
    Case(f"{_TUNE} --model a --parameter x", 2, "add --yes"),
    Case(f"{_TUNE} --model a --budget-minutes 0", 2, "add --yes"),
    Case(f"{_TUNE} --model a --step-seconds 0", 2, "add --yes"),
    # rehearse and env
    Case(
        "rehearse none",
        2,
        "OLD and NEW are both none",
        "write both, or `none`",
        "rehearse none none",
    ),
    Case("rehearse none none --fleet a", 2, "OLD and NEW are both none"),
    Case("rehearse none none --parameters a", 2, "OLD and NEW are both none"),
    Case("rehearse none none --orders 0", 2, "OLD and NEW are both none"),
    Case("env bild --help", output="usage: constructs-triton env build"),
)
