"""Writes random valid models whose shapes depend on computed values.

Each value of a shape is built backwards: an expression is chosen that gives the wanted numbers. So
each model is valid, whatever the expression is. Every model is small enough to be read.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

BATCH = 5
"""The size that the variable dimension ``N`` of the input has where the values are computed."""
_MOST_DEEP = 3
_OPSET, _IR_VERSION = 17, 8
Size = tuple[int, ...]


class RandomGraph:
    """A graph that grows by random operators.

    Args:
        seed: Which graph it is.
        opset: Operator set of ``ai.onnx``.
    """

    def __init__(self, seed: int, opset: int = _OPSET) -> None:
        self.random = random.Random(seed)
        self.opset = opset
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.value_info: list[Any] = []
        self.shapes: dict[str, Size] = {"x": (BATCH, *self._sizes(1, 3))}
        self.inputs = [self._value("x", ["N", *self.shapes["x"][1:]])]

    def _sizes(self, least: int, most: int) -> Size:
        return tuple(self.random.randint(2, 4) for _ in range(self.random.randint(least, most)))

    def _value(self, name: str, dims: Sequence[int | str | None]) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)

    def add(self, operator: str, inputs: Sequence[str], **attributes: Any) -> str:
        """Add an operator, and return the name of its output."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def constant(self, values: Any, dtype: str = "int64") -> str:
        """Add a constant: an initializer, or an operator."""
        array = np.array(values, dtype=dtype)
        if self.random.random() < 0.3:
            return self.add("Constant", (), value=numpy_helper.from_array(array))
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    # Lists of integers.

    def integers(self, wanted: Sequence[int], depth: int = 0) -> str:
        """Add an expression with these values, and return its name."""
        if depth >= _MOST_DEEP or self.random.random() < 0.1:
            return self.constant(list(wanted))
        ways = [self._by_arithmetic, self._by_selection, self._by_parts, self._by_shape]
        return self.random.choice(ways)(list(wanted), depth + 1)

    def _by_arithmetic(self, wanted: list[int], depth: int) -> str:
        def below(values: Sequence[int]) -> str:
            return self.integers(values, depth)

        number = self.random.randint(2, 5)
        ways: dict[str, Callable[[], str]] = {
            "neg": lambda: self.add("Neg", [below([-each for each in wanted])]),
            "add": lambda: self.add(
                "Add", [below([each - number for each in wanted]), self.constant([number])]
            ),
            "sub": lambda: self.add(
                "Sub", [below([each + number for each in wanted]), self.constant([number])]
            ),
            "div": lambda: self.add(
                "Div", [below([each * number for each in wanted]), self.constant([number])]
            ),
            "mul": lambda: self.add("Mul", [below(wanted), self.constant([1])]),
            "identity": lambda: self.add("Identity", [below(wanted)]),
            "cast": lambda: self.add(
                "Cast",
                [self.add("Cast", [below(wanted)], to=TensorProto.INT32)],
                to=TensorProto.INT64,
            ),
            "floor": lambda: self.add(
                "Cast",
                [
                    self.add(
                        self.random.choice(["Floor", "Ceil", "Round"]),
                        [self.add("Cast", [below(wanted)], to=TensorProto.FLOAT)],
                    )
                ],
                to=TensorProto.INT64,
            ),
            "min": lambda: self.add(
                "Min", [below(wanted), self.constant([each + number for each in wanted])]
            ),
            "max": lambda: self.add(
                "Max", [below(wanted), self.constant([each - number for each in wanted])]
            ),
            "where": lambda: self.add(
                "Where",
                [
                    self.constant([True] * len(wanted), "bool"),
                    below(wanted),
                    self.constant([number] * len(wanted)),
                ],
            ),
        }
        if min(wanted, default=0) >= 0:
            ways["abs"] = lambda: self.add("Abs", [below([-each for each in wanted])])
            ways["mod"] = lambda: self.add("Mod", [below(wanted), self.constant([1000])])
        return self.random.choice(list(ways.values()))()

    def _by_selection(self, wanted: list[int], depth: int) -> str:
        way = self.random.randrange(4)
        if way == 0:
            order = list(range(len(wanted)))
            self.random.shuffle(order)
            mixed = [0] * len(wanted)
            for place, index in enumerate(order):
                mixed[index] = wanted[place]
            return self.add("Gather", [self.integers(mixed, depth), self.constant(order)])
        if way == 1:
            longer = self.integers([*wanted, 7, 9], depth)
            ends = [self.constant([0]), self.constant([len(wanted)])]
            return self.add("Slice", [longer, *ends])
        if way == 2:
            column = self.add(
                "Unsqueeze",
                [self.integers(wanted, depth), self.constant([self.random.choice([0, 1])])],
            )
            return self.add("Reshape", [column, self.constant([-1])])
        column = self.add("Unsqueeze", [self.integers(wanted, depth), self.constant([1])])
        return self.add("Squeeze", [column, self.constant([1])])

    def _by_parts(self, wanted: list[int], depth: int) -> str:
        if len(wanted) < 2:
            return self.integers(wanted, depth)
        cut = self.random.randint(1, len(wanted) - 1)
        parts = [self.integers(wanted[:cut], depth), self.integers(wanted[cut:], depth)]
        return self.add("Concat", parts, axis=0)

    def _by_shape(self, wanted: list[int], depth: int) -> str:
        """Take each number from the shape of a tensor, if one has it."""
        places = [
            [
                (name, axis)
                for name, shape in self.shapes.items()
                for axis, size in enumerate(shape)
                if size == each
            ]
            for each in wanted
        ]
        if not all(places) or not wanted:
            return self._by_parts(wanted, depth)
        parts = []
        for each in places:
            name, axis = self.random.choice(each)
            shape = self.add("Shape", [name])
            if self.random.random() < 0.5:
                scalar = self.add("Gather", [shape, self.constant(axis)])
                parts.append(self.add("Unsqueeze", [scalar, self.constant([0])]))
            else:
                parts.append(
                    self.add("Slice", [shape, self.constant([axis]), self.constant([axis + 1])])
                )
        return self.add("Concat", parts, axis=0)

    def _places_of(self, wanted: int) -> list[tuple[str, int]]:
        return [
            (name, axis)
            for name, shape in self.shapes.items()
            for axis, size in enumerate(shape)
            if size == wanted
        ]

    def scalar(self, wanted: int) -> str:
        """Add an expression with one value and rank 0."""
        return self.add("Squeeze", [self.integers([wanted]), self.constant([0])])

    # Tensors.

    def grow(self, name: str) -> str:
        """Add an operator behind a tensor, and return the name of what it computes."""
        ways = [getattr(self, each) for each in dir(self) if each.startswith("_op_")]
        result = self.random.choice(ways)(name, self.shapes[name])
        if self.random.random() < 0.15:
            shape = self.shapes[result]
            dims = [None if self.random.random() < 0.5 or each == BATCH else each for each in shape]
            self.value_info.append(self._value(result, dims))
        return str(result)

    def _tensor(self, name: str, shape: Sequence[int]) -> str:
        self.shapes[name] = tuple(int(each) for each in shape)
        return name

    def _op_reshape(self, name: str, shape: Size) -> str:
        parts = list(shape)
        if len(parts) > 1 and self.random.random() < 0.7:
            parts = [parts[0] * parts[1], *parts[2:]]
        elif self.random.random() < 0.5:
            parts = [*parts, 1]
        wanted = list(parts)
        if self.random.random() < 0.5:
            wanted[self.random.randrange(len(wanted))] = -1
        elif wanted[0] == shape[0] and self.random.random() < 0.4:
            wanted[0] = 0
        return self._tensor(self.add("Reshape", [name, self.integers(wanted)]), parts)

    def _op_expand(self, name: str, shape: Size) -> str:
        wanted = [self.random.choice([2, 3]), *shape]
        return self._tensor(self.add("Expand", [name, self.integers(wanted)]), wanted)

    def _op_tile(self, name: str, shape: Size) -> str:
        times = [self.random.choice([1, 1, 2]) for _ in shape]
        result = self.add("Tile", [name, self.integers(times)])
        return self._tensor(result, [a * b for a, b in zip(shape, times, strict=True)])

    def _op_pad(self, name: str, shape: Size) -> str:
        pads = [self.random.choice([0, 0, 1]) for _ in range(2 * len(shape))]
        result = self.add("Pad", [name, self.integers(pads)])
        half = len(shape)
        return self._tensor(
            result, [size + pads[i] + pads[half + i] for i, size in enumerate(shape)]
        )

    def _op_slice(self, name: str, shape: Size) -> str:
        axis = self.random.randrange(len(shape))
        end = self.random.randint(1, shape[axis])
        inputs = [name, self.integers([0]), self.integers([end]), self.integers([axis])]
        new = [end if index == axis else size for index, size in enumerate(shape)]
        return self._tensor(self.add("Slice", inputs), new)

    def _op_resize(self, name: str, shape: Size) -> str:
        times = [1, *(self.random.choice([1, 2]) for _ in shape[1:])]
        new = [a * b for a, b in zip(shape, times, strict=True)]
        if self.random.random() < 0.5:
            scales = self.add("Cast", [self.integers(times)], to=TensorProto.FLOAT)
            result = self.add("Resize", [name, "", scales])
        else:
            result = self.add("Resize", [name, "", "", self.integers(new)])
        return self._tensor(result, new)

    def _op_constant_of_shape(self, name: str, shape: Size) -> str:
        zeros = self.add("ConstantOfShape", [self.integers(shape)])
        return self._tensor(self.add("Add", [name, zeros]), shape)

    def _op_range(self, name: str, shape: Size) -> str:
        numbers = self.add("Range", [self.scalar(0), self.scalar(shape[-1]), self.constant(1)])
        numbers = self.add("Cast", [numbers], to=TensorProto.FLOAT)
        return self._tensor(self.add("Mul", [name, numbers]), shape)

    def _op_non_zero(self, name: str, shape: Size) -> str:
        ones = self.constant(np.ones(shape[-1]), "float32")
        places = self.add("NonZero", [ones])
        flat = self.add("Reshape", [places, self.constant([-1])])
        return self._tensor(self.add("Gather", [name, flat], axis=len(shape) - 1), shape)

    def _op_reduce_sum(self, name: str, shape: Size) -> str:
        axis = self.random.randrange(len(shape))
        keeps = int(len(shape) == 1 or self.random.random() < 0.5)
        result = self.add("ReduceSum", [name, self.integers([axis])], keepdims=keeps)
        new = [1 if index == axis else size for index, size in enumerate(shape)]
        if not keeps:
            del new[axis]
        return self._tensor(result, new)

    def _op_unsqueeze(self, name: str, shape: Size) -> str:
        if len(shape) > 4:
            return self._op_relu(name, shape)
        axis = self.random.randint(0, len(shape))
        result = self.add("Unsqueeze", [name, self.integers([axis])])
        return self._tensor(result, [*shape[:axis], 1, *shape[axis:]])

    def _op_top_k(self, name: str, shape: Size) -> str:
        size = self.random.randint(1, shape[-1])
        result = self.add("TopK", [name, self.integers([size])])
        self.nodes[-1].output.append(f"{result}_indices")
        return self._tensor(result, [*shape[:-1], size])

    def _op_if(self, name: str, shape: Size) -> str:
        branches = {}
        for branch in ("then_branch", "else_branch"):
            output = f"{branch}{len(self.nodes)}"
            inner = helper.make_node(self.random.choice(["Relu", "Abs"]), [name], [output])
            value = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
            branches[branch] = helper.make_graph([inner], branch, [], [value])
        condition = self.add("Greater", [self.scalar(self.random.choice([1, 3])), self.constant(2)])
        return self._tensor(self.add("If", [condition], **branches), shape)

    def _op_relu(self, name: str, shape: Size) -> str:
        return self._tensor(self.add("Relu", [name]), shape)

    def _op_transpose(self, name: str, shape: Size) -> str:
        order = list(range(len(shape)))
        self.random.shuffle(order)
        return self._tensor(
            self.add("Transpose", [name], perm=order), [shape[each] for each in order]
        )

    def _op_mat_mul(self, name: str, shape: Size) -> str:
        if shape[-1] == BATCH:
            return self._op_relu(name, shape)
        weights = self.constant(np.ones((shape[-1], 3)), "float32")
        return self._tensor(self.add("MatMul", [name, weights]), [*shape[:-1], 3])

    def _op_concat(self, name: str, shape: Size) -> str:
        axis = self.random.randrange(len(shape))
        result = self.add("Concat", [name, name], axis=axis)
        new = [size * (1 + (index == axis)) for index, size in enumerate(shape)]
        return self._tensor(result, new)

    def _op_flatten(self, name: str, shape: Size) -> str:
        axis = self.random.randint(0, len(shape))
        rows, columns = int(np.prod(shape[:axis])), int(np.prod(shape[axis:]))
        return self._tensor(self.add("Flatten", [name], axis=axis), [rows, columns])

    def _op_column_plus_row(self, name: str, shape: Size) -> str:
        """A table of two lists of integers, as finite differences and masks have it."""
        rows = [self.random.randint(0, 3) for _ in range(3)]
        column = self.add("Unsqueeze", [self.integers(rows), self.constant([-1])])
        operator = self.random.choice(["Add", "Sub", "Mul"])
        table = self.add(operator, [column, self.integers([1, 2])])
        total = self.add("ReduceSum", [self.add("Cast", [table], to=TensorProto.FLOAT)], keepdims=0)
        return self._tensor(self.add("Mul", [name, total]), shape)

    # The model.

    def model(self, output: str) -> Any:
        """Return the model with one output, whose declared shape may be unknown."""
        known = [None if each == BATCH else each for each in self.shapes[output]]
        ways: list[Any] = [None, [None] * len(known), known]
        value = self._value(output, self.random.choice(ways))
        graph = helper.make_graph(
            self.nodes,
            "random",
            self.inputs,
            [value],
            self.initializers,
            value_info=self.value_info,
        )
        opsets = [helper.make_opsetid("", self.opset)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)


def random_model(seed: int) -> Any:
    """Return the random model of a seed."""
    graph = RandomGraph(seed)
    name = "x"
    for _ in range(graph.random.randint(1, 4)):
        name = graph.grow(name)
    return graph.model(name)


def main(folder: Path, count: int) -> None:
    """Write models, each to a folder of its own."""
    for seed in range(count):
        path = folder / f"{seed:05}" / "model.onnx"
        path.parent.mkdir(parents=True)
        path.write_bytes(random_model(seed).SerializeToString())


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
