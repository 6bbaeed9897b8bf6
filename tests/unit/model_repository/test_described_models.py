"""``triton-models.toml``: what is read, what is refused, and how it agrees with arguments."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from constructs_triton.cli import main
from constructs_triton_core.errors import InvalidValueError
from triton_model_check.model_repository import ModelRepository, pack
from triton_model_check.model_repository.composition import CompositionOptions

pytestmark = pytest.mark.usefixtures("own_cache")

CALLER = "import triton_python_backend_utils as pb_utils\nNAME = str(1)\n" + (
    "class TritonPythonModel:\n    def execute(self, requests):\n"
    "        return pb_utils.InferenceRequest(model_name=NAME, **requests[0])\n"
)
CALLED = "class TritonPythonModel:\n    def execute(self, requests): ...\n"
TENSOR = '[ { name: "%s" data_type: TYPE_FP32 dims: [ 1 ] } ]'
CONFIG = f'backend: "python"\ninput {TENSOR % "X"}\noutput {TENSOR % "Y"}\n'


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A model that calls another one by a name that is not in its source."""
    for name in ("pipeline", "scale"):
        folder = tmp_path / "models" / name
        (folder / "1").mkdir(parents=True)
        (folder / "config.pbtxt").write_text(CONFIG)
        (folder / "1" / "model.py").write_text(CALLER if name == "pipeline" else CALLED)
    return tmp_path / "models"


def describe(models: Path, text: str) -> Path:
    """Write the file, and return its path."""
    path = models / "triton-models.toml"
    path.write_text(text)
    return path


def test_calls_apply_to_every_reader(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The called model is packed, ``config show`` names it,
    and ``check`` prints no warning about it.
    """
    assert main(["check", str(models)]) == 0
    assert "python-called-model-unknown" in capsys.readouterr().out
    describe(models, 'also_served = ["scale"]\n[calls]\npipeline = ["scale"]\n')
    assert main(["check", "--default-model", "pipeline", str(models)]) == 0
    assert "0 errors, 0 warnings" in capsys.readouterr().out
    repository = ModelRepository.from_directory(models)
    assert repository.closure("pipeline") == ["pipeline", "scale"]
    assert repository.top_level_models() == ["pipeline", "scale"]
    assert main(["config", "show", "--model", "pipeline", str(models)]) == 0
    assert 'note: triton-models.toml: calls "scale"' in capsys.readouterr().out


def test_the_file_is_not_packed(models: Path, tmp_path: Path) -> None:
    """An archive with the file beside the models is that without it."""
    calls = {"pipeline": ["scale"]}
    repository = ModelRepository.from_directory(models, calls=calls)
    before = pack(repository, repository.closure("pipeline"), tmp_path / "before").digest
    describe(models, '[calls]\npipeline = ["scale"]\n')
    repository = ModelRepository.from_directory(models)
    assert pack(repository, repository.closure("pipeline"), tmp_path / "after").digest == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("call = {}", r"models.toml:1: call: unknown key; did you mean \"calls\"\?"),
        (
            "\n# calls\n[calls]\npipelin = []",
            r':4: calls: .* got "pipelin"; did you mean "pipeline"\?',
        ),
        (
            '[calls]\npipeline = "scale"',
            r':2: calls.pipeline: must be a list of names of .*, got "scale"',
        ),
        ("[calls]\npipeline = []\nalso_served = []", ":3: calls: .*move this key above the first"),
        ('also_served = ["scal"]', r':1: also_served: .* did you mean "scale"\?'),
        (
            "python_environments = 1",
            ":1: python_environments: must be a table, got 1; write MODEL =",
        ),
        ("[python_environments.scale]\nrequirement = 'r'", r':2: .*did you mean "requirements"\?'),
        (
            "[python_environments.scale]",
            ":1: .*requirements: must be the path of a file, got nothing",
        ),
        (
            "[python_environments.scale]\nimage_version = 26.05",
            r':2: .* write image_version = "26.05"',
        ),
        ("[python_environments.scale]\nimage_version = '26.5'", r':2: .*write it as "26.05"'),
        (
            "[python_environments]\n'*' = {requirements='r'}\nscale = {requirements='r'}",
            ":2: .*remove it",
        ),
        ("calls = [", ":1: is not valid TOML|models.toml: is not valid TOML"),
        # Long keys, nested values, long numbers and large files are refused in a bounded time.
        *(
            (f"{key}{'.a' * times} = 1", r"models\.toml")
            for key, times in (("a", 30_000), ("calls", 4_000))
        ),
        *((f"calls = {each}", r"models\.toml") for each in ("[" * 4_000, "9" * 5_000)),
        *((each, r"models\.toml") for each in ("# " + "x" * (64 << 10), 'also_served = "\x00"')),
    ],
    ids=range(18),
)
def test_malformed_file_is_an_error_with_its_line(models: Path, text: str, message: str) -> None:
    """Unknown keys and models, and values of other types, name the file, the line and the fix."""
    describe(models, text)
    with pytest.raises(InvalidValueError, match=message):
        ModelRepository.from_directory(models)


@pytest.mark.parametrize("given", ["../secret.txt", "/etc/passwd", "link.txt", "link/secret.txt"])
def test_only_requirements_in_the_folder_are_read(models: Path, given: str) -> None:
    """Paths and links that leave the folder of the models are refused, whatever they lead to."""
    (models.parent / "secret.txt").write_text("secret")
    (models / "link.txt").symlink_to("../secret.txt")
    (models / "link").symlink_to(models.parent)
    describe(models, f'[python_environments]\n"*" = {{ requirements = "{given}" }}')
    with pytest.raises(
        InvalidValueError, match=r":2: .*must be a file in the folder of triton-models"
    ):
        ModelRepository.from_directory(models)


def test_a_file_that_is_none_is_not_read(models: Path) -> None:
    """A link out of the folder and a named pipe are errors, and nothing is read of them."""
    place = models / "triton-models.toml"
    (models.parent / "secret.txt").write_text("calls = {}")
    place.symlink_to("../secret.txt")
    with pytest.raises(InvalidValueError, match="a link that leaves the folder"):
        ModelRepository.from_directory(models)
    place.unlink()
    os.mkfifo(place)
    with pytest.raises(InvalidValueError, match="a named pipe instead of a file"):
        ModelRepository.from_directory(models)


def test_arguments_must_equal_the_file(models: Path) -> None:
    """Equal values pass in any order; another value is an error that names the
    argument and the line.
    """
    path = describe(models, 'also_served = ["scale"]\n[calls]\npipeline = ["scale", "pipeline"]\n')
    equal = ModelRepository.from_directory(
        models, calls={"pipeline": ["pipeline", "scale"]}, also_served=["scale"]
    )
    assert equal.composition.also_served == ("scale",)
    repository = ModelRepository.from_directory(models)
    for options, message in (
        (
            CompositionOptions.of({"pipeline": ["scale"]}),
            rf"calls \(--called-models\): .*{path}:2, got",
        ),
        (CompositionOptions.of(None, ["pipeline"]), rf"also_served: .*{path}:1, got"),
    ):
        with pytest.raises(InvalidValueError, match=message):
            repository.compose(options)
    assert main(["check", "--called-models", "pipeline=scale", str(models)]) == 2
