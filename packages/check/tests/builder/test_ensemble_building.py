"""``Ensemble``: what it infers, how it connects steps, and which errors it raises."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from constructs_triton_core.errors import InvalidValueError
from triton_model_check.model_config import (
    Ensemble,
    ModelConfig,
    ModelInput,
    ModelOutput,
    ModelTensorReshape,
)


def _model(
    name: str, reads: str, writes: str, *, size: int = 8, dims: tuple[int, ...] = (-1,)
) -> ModelConfig:
    """A model with FP32 tensors; ``reads`` and ``writes`` are their names, separated by spaces."""
    return ModelConfig(
        name=name,
        backend="python",
        max_batch_size=size,
        input=[
            ModelInput(name=tensor, data_type="TYPE_FP32", dims=dims) for tensor in reads.split()
        ],
        output=[
            ModelOutput(name=tensor, data_type="TYPE_FP32", dims=dims) for tensor in writes.split()
        ],
    )


DECODE = _model("decode", "image", "pixels")
CLASSIFY = _model("classify", "pixels", "logits", size=4, dims=(10,))
RANK = _model("rank", "logits", "label", size=16)


def _maps(config: ModelConfig) -> list[tuple[str, dict[str, str], dict[str, str]]]:
    steps = config.ensemble_scheduling.step if config.ensemble_scheduling else ()
    return [(step.model_name, dict(step.input_map), dict(step.output_map)) for step in steps]


def test_steps_are_wired_by_name_and_put_in_order() -> None:
    """Steps in reverse order are connected by equal names, and sorted by what they read."""
    built = (
        Ensemble("e")
        .input("image")
        .step(RANK)
        .step(CLASSIFY)
        .step(DECODE)
        .output("label")
        .to_config()
    )
    assert _maps(built) == [
        ("decode", {"image": "image"}, {"pixels": "pixels"}),
        ("classify", {"pixels": "pixels"}, {"logits": "logits"}),
        ("rank", {"logits": "logits"}, {"label": "label"}),
    ]
    assert built.max_batch_size == 4
    assert {step.model_version for step in built.ensemble_scheduling.step} == {-1}  # type: ignore[union-attr]


def test_limit_of_requests_in_a_step_is_written() -> None:
    """``max_inflight_requests`` is written with the steps, and left out by default."""
    limited = (
        Ensemble("e", max_inflight_requests=4)
        .input("image")
        .step(DECODE)
        .output("pixels")
        .to_config()
    )
    assert limited.ensemble_scheduling is not None
    assert limited.ensemble_scheduling.max_inflight_requests == 4
    unlimited = Ensemble("e").input("image").step(DECODE).output("pixels").to_config()
    assert "max_inflight_requests" not in unlimited.to_text()


def test_unread_outputs_stay_unmapped() -> None:
    """An output that nothing reads is left out; one output can go to a step and to the ensemble."""
    chatty, last = _model("chatty", "x", "y trace"), _model("last", "y", "z")
    built = Ensemble("e").input("x").step(chatty).step(last).output("z").output("y").to_config()
    assert _maps(built)[0] == ("chatty", {"x": "x"}, {"y": "y"})


def test_dims_combine_those_of_all_readers() -> None:
    """An input read by several steps has each axis fixed as soon as one of them fixes it."""
    loose, tight = _model("loose", "x", "a", dims=(-1, 3)), _model("tight", "x", "b", dims=(5, -1))
    built = Ensemble("e").input("x").step(loose).step(tight).output("a").output("b").to_config()
    assert built.input == (ModelInput(name="x", data_type="TYPE_FP32", dims=[5, 3]),)


@pytest.mark.parametrize(
    ("size", "given", "dims"),
    [(8, None, [-1]), (8, 0, [-1, -1]), (0, None, [-1])],
    ids=["batching", "batching-below-none", "none"],
)
def test_batch_axis_belongs_to_dims_where_the_ensemble_does_not_batch(
    size: int, given: int | None, dims: list[int]
) -> None:
    """Dims include the batch axis in an ensemble without batching whose models have batching."""
    built = (
        Ensemble("e", max_batch_size=given)
        .input("image")
        .step(_model("m", "image", "y", size=size))
    )
    config = built.output("y").to_config()
    assert [list(config.input[0].dims), list(config.output[0].dims)] == [dims, dims]
    assert config.max_batch_size == (size if given is None else given)


def test_step_without_batching_keeps_the_axis_in_its_dims() -> None:
    """In an ensemble with batching, a model without batching has the batch axis in its dims."""
    plain = _model("plain", "x", "image", size=0, dims=(-1, 7))
    decode = DECODE.with_(input=[ModelInput(name="image", data_type="TYPE_FP32", dims=[7])])
    built = (
        Ensemble("e", max_batch_size=2)
        .input("x")
        .step(plain)
        .step(decode)
        .output("pixels")
        .to_config()
    )
    assert list(built.input[0].dims) == [7]


def test_optional_input_is_mapped_only_where_there_is_a_tensor() -> None:
    """An optional input reads the tensor of its name if there is one, and is left out otherwise."""
    size = ModelInput(name="size", data_type="TYPE_FP32", dims=[1], optional=True)
    model = DECODE.with_(input=[*DECODE.input, size])
    without = Ensemble("e").input("image").step(model).output("pixels").to_config()
    assert _maps(without)[0][1] == {"image": "image"}
    given = Ensemble("e").input("image").input("size").step(model).output("pixels").to_config()
    assert _maps(given)[0][1] == {"image": "image", "size": "size"}


def test_given_fields_of_a_tensor_stay() -> None:
    """An input given as a ``ModelInput`` keeps its fields; only missing ones are inferred."""
    tensor = ModelInput(
        name="image", reshape=ModelTensorReshape(shape=[-1]), allow_ragged_batch=True
    )
    built = Ensemble("e").input(tensor).step(DECODE).output("pixels").to_config()
    assert built.input[0].allow_ragged_batch
    assert built.input[0].data_type == "TYPE_FP32"


def test_ensembles_nest() -> None:
    """An ensemble can be a step, which adds its models too."""
    inner = Ensemble("inner").input("image").step(DECODE).step(CLASSIFY).output("logits")
    outer = Ensemble("outer").input("image").step(inner).step(RANK).output("label")
    assert [model.name for model in outer.models] == ["decode", "classify", "inner", "rank"]
    assert [name for name, _, _ in _maps(outer.to_config())] == ["inner", "rank"]


@pytest.mark.parametrize("size", [None, 4])
def test_model_known_by_name_alone_is_mapped_by_hand(size: int | None) -> None:
    """Its types must be given, and it does not limit the batch size."""
    built = (
        Ensemble("e", max_batch_size=size)
        .input("image")
        .step(DECODE)
        .step("elsewhere", inputs={"in": "pixels"}, outputs={"out": "score"})
        .output("score", data_type="TYPE_FP32", dims=[1])
        .to_config()
    )
    assert _maps(built)[1] == ("elsewhere", {"in": "pixels"}, {"out": "score"})
    assert built.max_batch_size == (size or 8)


def _cycle(given: Any) -> object:
    ranked = given.step(DECODE).step(RANK, inputs={"logits": "pixels"}, outputs={"label": "image2"})
    return ranked.step(CLASSIFY, inputs={"pixels": "x"}, outputs={"logits": "x"})


WIDE, UNBATCHED = _model("m", "pixels", "z", dims=(1, 2)), _model("m", "pixels", "z", size=0)
BYTES = Ensemble("e").input("image", data_type="TYPE_UINT8")
TO_P = {"pixels": "p"}
OTHER_TYPE = (
    'TYPE_UINT8 is inferred from the ensemble while TYPE_FP32 is inferred from model "decode"'
)
OTHER_DIMS = '[-1, -1] is inferred from model "decode" while [-1, 1, 2] is inferred from model "m"'
TOO_LARGE = "which only allows maximum batch size to be 8; set max_batch_size to 8 in the ensemble"
MIXED = 'max_batch_size cannot be inferred, got "decode" with batching and "m" without; write'
NO_INPUT = (
    'step 1 ("decode") input_map: ensemble tensor "image" is mapped to non-existing input "imag"'
)
NO_OUTPUT = 'is mapped from non-existing output "pixel"; did you mean "pixels"?'
OVERWRITTEN = 'step 1 ("decode") writes an input of the ensemble, got "image"'
WRITTEN_TWICE = 'ensemble tensor "p" can appear in an output map only once'
NO_FRACTION = "ModelEnsembling.max_inflight_requests: does not fit its field, got 1.5"
FRACTION: Any = 1.5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda e: e.step(DECODE, inputs={"imag": "image"}), NO_INPUT),
        (lambda e: e.step(DECODE, outputs={"pixel": "p"}), NO_OUTPUT),
        (lambda _: BYTES.step(DECODE), OTHER_TYPE),
        (lambda e: e.step(DECODE).step(WIDE), OTHER_DIMS),
        (lambda _: Ensemble("e", max_batch_size=9).step(DECODE), TOO_LARGE),
        (lambda e: e.step(DECODE, outputs={"pixels": "image"}), OVERWRITTEN),
        (lambda e: e.step(DECODE, outputs=TO_P).step(DECODE, outputs=TO_P), WRITTEN_TWICE),
        (
            lambda e: e.step(DECODE).step(DECODE).output("pixels"),
            'reads "pixels", which is ambiguous',
        ),
        (_cycle, 'because they depend on each other, got "x"'),
        (lambda e: e.step(DECODE).step(UNBATCHED), MIXED),
        (lambda e: e.input("image"), "the input exists already, got 'image'"),
        (lambda e: e.step(DECODE.with_(name="")), "step: must be a model with a name"),
        (
            lambda e: e.step(DECODE).step(RANK.with_(name="decode")),
            "models have the same name, got 'decode'",
        ),
        (
            lambda e: e.step(DECODE, inputs={"image": 1}),
            "step inputs: must map a tensor of the model",
        ),
        (
            lambda e: e.step(DECODE, inputs=["image"]),
            "step inputs: must be a mapping, got ['image']",
        ),
        (lambda e: e.output(3), "must be a name, or a ModelOutput with a name"),
        (
            lambda e: e.input(ModelInput(name="x"), dims=[1]),
            "set data_type and dims in the ModelInput",
        ),
        (
            lambda _: Ensemble("e", max_batch_size=True),
            "max_batch_size must be a whole number, got True",
        ),
        (lambda _: Ensemble("e", max_inflight_requests=FRACTION), NO_FRACTION),
        (lambda _: Ensemble(""), "ensemble: must have a name, got ''"),
    ],
)
def test_error_is_raised_by_the_call_that_causes_it(
    call: Callable[[Any], object], message: str
) -> None:
    """An error that no later step can fix is raised at once."""
    with pytest.raises(InvalidValueError) as caught:
        call(Ensemble("e").input("image"))
    assert message in str(caught.value)


def test_unfinished_ensemble_names_the_lines_of_its_errors() -> None:
    """An error that a later step could fix is raised at the end, with its own line of Python."""
    first = inspect.currentframe().f_lineno  # type: ignore[union-attr]
    unfinished = (
        Ensemble("e")
        .input("image")
        .input("mask")
        .step(DECODE, outputs={"pixels": "p"})
        .step(RANK, inputs={"logits": "q"})
        .output("label")
    )
    with pytest.raises(InvalidValueError) as caught:
        unfinished.to_config()
    here = "test_ensemble_building.py"
    *_, unused, unwritten, unread = str(caught.value).splitlines()
    assert unused.startswith(f'{here}:{first + 4}: ensemble "e": ensemble input "mask" is not')
    assert unwritten == (
        f'{here}:{first + 6}: ensemble "e": step 2 ("rank") input_map["logits"]: nothing writes '
        'tensor "q", got tensors "image", "label", "mask" and "p"; map an output of a step to it'
    )
    assert unread == (
        f'{here}:{first + 5}: ensemble "e": step 1 ("decode") output_map["pixels"]: ensemble '
        'tensor "p" is unused; remove the step, or add the tensor to output or to an input_map'
    )


def test_misspelled_tensor_gets_the_name_that_is_read() -> None:
    """The hint for an unused tensor is a similar name that a step reads and nothing writes."""
    unfinished = (
        Ensemble("e")
        .input("image")
        .step(DECODE, outputs={"pixels": "pixelz"})
        .step(CLASSIFY, inputs={"pixels": "pixels"})
        .output("logits")
    )
    with pytest.raises(InvalidValueError, match='"pixelz" is unused; did you mean "pixels"'):
        unfinished.to_config()


def test_calls_do_not_change_what_they_are_called_on() -> None:
    """Each call returns a new ensemble, so several can share their first steps."""
    begun = Ensemble("e").input("image").step(DECODE)
    short = begun.output("pixels").to_config()
    long = begun.step(CLASSIFY).output("logits").to_config()
    assert [len(_maps(short)), len(_maps(long))] == [1, 2]
