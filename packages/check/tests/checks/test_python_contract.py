"""Which Python models the checks of the backend's contract leave alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from check_examples.python_contract import model
from check_examples.repositories import HEAD, one, write

from constructs_triton_core.findings import Verdict
from triton_model_check.checks.report import Report
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository

SERVER = Target.named("server", image_version="24.10")
RESPONSE = 'pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.zeros(4, np.float32))])'
SENDS = f"""def execute(self, requests):
    for request in requests:
        request.get_response_sender().send({RESPONSE}, flags=1)
"""
CALLS = """def execute(self, requests):
    request = pb_utils.InferenceRequest(
        model_name="absent", requested_output_names=["Y"], inputs=[]
    )
    return [{}]
"""


def _initialize(*lines: str) -> str:
    return model("def initialize(self, args):\n    " + "\n    ".join(lines) + "\n")


def _check(source: str, folder: Path, target: Target = SERVER) -> Report:
    files = write(one(HEAD, **{"m/1/model.py": source}), folder / "models")
    return ModelRepository.from_directory(files).check(target, is_packed=False)


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(_initialize("if hasattr(np, 'x'):", "    absent"), id="condition"),
        pytest.param(_initialize("try:", "    absent", "except Exception:", "    pass"), id="try"),
        pytest.param(_initialize("exec('absent = 1')", "absent"), id="exec"),
        pytest.param(_initialize("globals()['absent'] = 1", "absent"), id="globals"),
        pytest.param(_initialize("x: absent = 1"), id="local annotation"),
        pytest.param(_initialize("setattr(self, 'x', 1)", "self.x"), id="setattr"),
        pytest.param(_initialize("self.x = args.get('x')"), id="get"),
        pytest.param(_initialize("args = {'x': 1}", "args['x']"), id="other argument"),
        pytest.param(_initialize("pb_utils.x = 1", "pb_utils.x"), id="own attribute"),
        pytest.param(
            model("def initialize(self, args, more=None):\n    pass\n"), id="default value"
        ),
        pytest.param(model("def initialize(*args):\n    pass\n"), id="any arguments"),
        pytest.param(model("def auto_complete_config(config):\n    return config\n"), id="plain"),
        pytest.param(
            model("@classmethod\ndef auto_complete_config(cls, config):\n    return config\n"),
            id="class method",
        ),
        pytest.param(
            "from __future__ import annotations\n"
            + model(execute="def execute(self, requests: list[pb_utils.Tensor]):\n    ...\n"),
            id="annotation that does not run",
        ),
        pytest.param(
            "from absent import *\n" + _initialize("self.scale = SCALE"), id="import of all"
        ),
        pytest.param(
            model(execute="@staticmethod\ndef execute(requests):\n    return list(requests)\n"),
            id="static execute",
        ),
        pytest.param(
            model(execute="async def execute(self, requests):\n    return list(requests)\n"),
            id="coroutine",
        ),
        pytest.param("import c_python_backend_utils as c_utils\n" + model(), id="c module"),
        pytest.param(model(execute=SENDS), id="response sender"),
    ],
)
def test_model_that_the_server_accepts_has_no_finding(source: str, tmp_path: Path) -> None:
    """No check reports code that works, or that may not run."""
    assert _check(source, tmp_path).findings == ()


def test_method_that_initialize_calls_runs_too(tmp_path: Path) -> None:
    """An error in a method that ``initialize`` certainly calls keeps the model from loading."""
    source = model(
        "def initialize(self, args):\n    self.load()\n", "def load(self):\n    absent\n"
    )
    (found,) = _check(source, tmp_path).findings
    assert (found.code, found.rejects) == ("python-undefined-name", True)


@pytest.mark.parametrize(("version", "warns"), [("24.05", True), ("24.06", False)])
def test_any_model_may_send_responses_since_24_06(
    version: str, warns: bool, tmp_path: Path
) -> None:
    """A model that is not decoupled may return ``None`` after it has sent its responses."""
    report = _check(model(execute=SENDS), tmp_path, Target.named("server", image_version=version))
    assert [each.code for each in report.findings] == ["python-execute-returns-none"] * warns


@pytest.mark.parametrize(
    ("execute", "target", "codes", "not_checked"),
    [
        (CALLS.format("request.exec()"), SERVER, [], True),
        (CALLS.format("request.exec()"), Target(default_model="m"), ["python-called-model"], False),
        (CALLS.format("None"), Target(default_model="m"), [], True),
    ],
)
def test_model_of_another_repository_is_not_refused(
    execute: str, target: Target, codes: list[str], not_checked: bool, tmp_path: Path
) -> None:
    """A server may have more repositories, and a request that is only created does not fail."""
    report = _check(model(execute=execute), tmp_path, target)
    assert [each.code for each in report.findings] == codes
    assert any("absent" in line for line in report.not_checked) is not_checked


@pytest.mark.parametrize(
    ("call", "version", "warns"),
    [
        ("pb_utils.InferenceResponse(output_tensors=[])", "21.07", False),
        ("pb_utils.InferenceResponse(output_tensors=[])", "21.08", False),
        ("pb_utils.InferenceResponse(parameters={})", "21.07", False),
        ('pb_utils.Tensor(name="Y", numpy_array=x)', "21.07", False),
        ('pb_utils.Tensor(name="Y", numpy_array=x)', "21.08", True),
        ("x.exec(decoupled=True)", "23.02", True),
        ("x.exec(decoupled=True)", "23.03", False),
        ("x.async_exec(decoupled=True)", "23.02", True),
    ],
)
def test_calls_have_the_arguments_of_the_release(
    call: str, version: str, warns: bool, tmp_path: Path
) -> None:
    """A call is reported only if the classes of the image's release do not take its arguments."""
    source = model(
        execute=f"def execute(self, requests):\n    x = requests[0]\n    return [{call}]\n"
    )
    report = _check(source, tmp_path, Target.named("server", image_version=version))
    codes = {finding.code for finding in report.findings}
    assert codes.isdisjoint({"python-response", "python-request-fails"}) is not warns


def test_generator_of_a_decoupled_model_has_sent_its_responses(tmp_path: Path) -> None:
    """A generator is no list, which matters only where ``execute`` returns the responses."""
    source = model(execute=f"{SENDS}        yield request\n")
    decoupled = HEAD + "model_transaction_policy { decoupled: true }\n"
    for number, config in enumerate((HEAD, decoupled)):
        files = write(one(config, **{"m/1/model.py": source}), tmp_path / str(number))
        report = ModelRepository.from_directory(files).check(SERVER, is_packed=False)
        codes = {finding.code for finding in report.findings}
        assert ("python-execute-result" in codes) is (config == HEAD)


def test_names_of_images_before_the_table_are_not_judged(tmp_path: Path) -> None:
    """What the backend of an image older than the table lacks is not known: nothing is reported."""
    lines = (f"self.answer = {RESPONSE.replace('([', '(output_tensors=[')}", "pb_utils.former()")
    old = Target.named("server", image_version="21.05")
    assert not _check(_initialize(*lines), tmp_path, old).findings
    codes = {each.code for each in _check(_initialize(*lines), tmp_path).findings}
    assert codes == {"python-backend-name"}


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "is_found"),
    [
        ('open("labels.json")', True),
        ('open("./labels.json", "rb")', True),
        ('np.load("labels.json")', True),
        ('open("labels.json", "w")', False),
        ('open("labels.json", mode=args["model_name"])', False),
        ('open("absent.json")', False),
        ('open("/labels.json")', False),
        ('open("../m/labels.json")', False),
        ('os.path.exists("labels.json") and open("labels.json")', False),
        ('os.chdir(args["model_repository"]); open("labels.json")', False),
    ],
)
def test_file_of_the_model_that_is_read_by_a_relative_name(
    line: str, is_found: bool, tmp_path: Path
) -> None:
    """Reading a file of the model by a relative name is reported, where it certainly happens."""
    source = f"import os\n{_initialize(line)}"
    files = one(HEAD, **{"m/1/model.py": source, "m/labels.json": "{}"})
    report = ModelRepository.from_directory(write(files, tmp_path / "models")).check(
        SERVER, is_packed=False
    )
    found = [finding.code for finding in report.findings]
    assert found == ["python-relative-file-on-server"] * is_found
    assert (report.verdict is Verdict.UNKNOWN) == is_found


def test_file_in_the_models_folder_is_found_by_the_argument(tmp_path: Path) -> None:
    """The hint names the folder in which the file is."""
    files = one(HEAD, **{"m/1/model.py": _initialize('open("a.txt")'), "m/a.txt": ""})
    repository = ModelRepository.from_directory(write(files, tmp_path / "models"))
    (finding,) = repository.check(SERVER, is_packed=False).findings
    assert finding.hint == 'write os.path.join(args["model_repository"], "a.txt") in initialize'
