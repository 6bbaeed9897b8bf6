"""What is an error because it fails at each request, and what may succeed and is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from check_examples.python_contract import model
from check_examples.repositories import HEAD, one, write

from triton_model_check.checks.report import Report
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository

RESPONSE = 'pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.zeros(4, np.float32))])'
READ = 'pb_utils.get_input_tensor_by_name(request, "{}")'


NAMED = "pb_utils.get_input_tensor_by_name(request, names[0]).as_numpy()"
REQUEST = 'pb_utils.InferenceRequest(model_name="m", inputs=[], requested_output_names=["Y"], {})'
METHOD = "def other(self, value):\n    return value\n"


def _execute(*lines: str) -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return model(METHOD, execute=f"def execute(self, requests):\n{body}")


def _each(*lines: str) -> str:
    """A loop over the requests with these lines, which answers each."""
    inside = (f"    {line}" for line in lines)
    answer = f"    responses.append({RESPONSE})"
    return _execute(
        "responses = []", "for request in requests:", *inside, answer, "return responses"
    )


def _check(source: str, folder: Path, version: str | None = "24.10") -> Report:
    files = write(one(HEAD, **{"m/1/model.py": source}), folder / "models")
    target = Target.named("server", image_version=version)
    return ModelRepository.from_directory(files).check(target, is_packed=False)


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(_each(f"x = {READ.format('X')}", "x.numpy()"), id="member"),
        pytest.param(_each(f"x = {READ.format('X')}", "y = x.as_numpy", "y.sum()"), id="method"),
        pytest.param(_each('name = "id-" + request.request_id'), id="method in a sum"),
        pytest.param(
            _each(f"x = {READ.format('X')}.as_numpy()", 'pb_utils.Tensor("Y", x.mean())'),
            id="scalar of a method",
        ),
        pytest.param(
            _each(f"x = {READ.format('X')}.as_numpy()", 'pb_utils.Tensor("Y", np.sum(x))'),
            id="scalar of a function",
        ),
        pytest.param(_each(f"x = {READ.format('Z')}", "x.as_numpy()"), id="absent input"),
        pytest.param(_each("for x in request.inputs():", "    pass", "x.shap()"), id="element"),
        pytest.param(_each("request.get_response_sender().send([1])"), id="sent list"),
        pytest.param(_each('names = ["Z"]', NAMED), id="name in a list"),
        pytest.param(_each(REQUEST.format("request_id=None")), id="no request id"),
        pytest.param(_each(REQUEST.format("request_id=[]")), id="list as request id"),
        pytest.param(
            _each("pb_utils.InferenceResponse(output_tensors={})"), id="dictionary as list"
        ),
        pytest.param(
            _each("if request.x:", "    raise ValueError", "np.absent"), id="before raise"
        ),
    ],
)
def test_certain_failure_is_found(source: str, tmp_path: Path) -> None:
    """What every request runs and what always fails makes the model one that cannot be served."""
    codes = {finding.code for finding in _check(source, tmp_path).errors}
    assert codes == {"python-request-fails"}


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(_each(f"x = {READ.format('X')}", "x = x.as_numpy()", "x.sum()"), id="rebound"),
        pytest.param(_each("x = request if request else None", "x.numpy()"), id="two kinds"),
        pytest.param(_each("for x in self.other(request):", "    x.numpy()"), id="other loop"),
        pytest.param(_each(f"x = {READ.format('Z')}", "if x is not None:", "    x.as_numpy()")),
        pytest.param(_each("try:", "    request.input()", "except AttributeError:", "    pass")),
        pytest.param(_each("if hasattr(request, 'input'):", "    request.input()"), id="hasattr"),
        pytest.param(
            _each("for _ in range(0):", "    request.input()"), id="loop that may not run"
        ),
        pytest.param(_each(READ.replace('"{}"', '["X"]')), id="lookup that is not read"),
        pytest.param(_each('names = ["Z"]', "names.reverse()", NAMED), id="changed list"),
        pytest.param(_each('names = ["Z"]', "self.other(names)", NAMED), id="list of another"),
        pytest.param(_each(REQUEST.format("request_id=b'1'")), id="bytes as request id"),
        pytest.param(_each("pb_utils.InferenceResponse(output_tensors=())"), id="tuple as list"),
        pytest.param(_each('name = "%s" % request.request_id'), id="formatted method"),
        pytest.param(
            _each(f"x = {READ.format('X')}.as_numpy()", 'pb_utils.Tensor("Y", x.sum(axis=0))'),
            id="sum over an axis",
        ),
        pytest.param(
            _each(f"x = {READ.format('X')}.as_numpy()", 'pb_utils.Tensor("Y", np.max(x, 1))'),
            id="maximum over an axis",
        ),
        pytest.param(_each("request = self.other(request)", "request.input()"), id="wrapped"),
        pytest.param(
            _execute("return [r for r in map(self.other, requests)]"), id="made elsewhere"
        ),
        pytest.param(_execute("found = []", "self.other(found)", "return found"), id="filled list"),
    ],
)
def test_what_may_succeed_is_left_alone(source: str, tmp_path: Path) -> None:
    """A variable of two kinds, a branch, a check for None and a handler leave it open."""
    codes = {finding.code for finding in _check(source, tmp_path).errors}
    assert codes.isdisjoint({"python-request-fails", "python-object", "python-execute-result"})


def test_member_of_a_newer_release_names_it(tmp_path: Path) -> None:
    """In an older image the hint says since which release an object has the member."""
    source = _each("request.is_cancelled()")
    assert not _check(source, tmp_path / "new", "23.10").errors
    (error,) = _check(source, tmp_path / "old", "23.09").errors
    assert error.hint == "use an image of 23.10 or later"


@pytest.mark.parametrize(
    ("version", "is_found"),
    [(None, True), ("24.10", True), ("99.12", False)],
)
def test_misspelt_name_is_found_unless_a_newer_image_was_named(
    version: str | None, is_found: bool, tmp_path: Path
) -> None:
    """The image that is assumed may be newer than the table of names; that must not turn the rule
    off for everybody who names none.
    """
    source = _each('pb_utils.get_input_tensor_by_nam(request, "X")')
    codes = {finding.code for finding in _check(source, tmp_path, version).errors}
    assert ("python-request-fails" in codes) is is_found
