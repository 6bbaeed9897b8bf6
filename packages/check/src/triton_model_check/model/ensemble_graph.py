"""The graph of an ensemble: its steps, and the tensors that they write and read.

Source: triton core, BuildEnsembleGraph and ValidateEnsembleSchedulingConfig.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

from constructs_triton_core.spelling import closest
from triton_model_check.model.folder import ModelFolder

__all__ = ["EnsembleGraph", "Step"]


@dataclass(frozen=True)
class Step:
    """One step of an ensemble, at its position in the configuration from 0.

    Version -1 is the newest. The maps have the ensemble's tensor by input and by output of the
    model.
    """

    index: int
    model_name: str
    model_version: int
    input_map: dict[str, str]
    output_map: dict[str, str]

    @property
    def title(self) -> str:
        """The name of the step in messages, counted from 1."""
        return f'step {self.index + 1} ("{self.model_name}")'


@dataclass(frozen=True)
class EnsembleGraph:
    """An ensemble's inputs, outputs and steps.

    Args:
        name: Name of the ensemble.
        inputs: Names of the inputs.
        outputs: Names of the outputs.
        steps: Steps in the order of the configuration.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    steps: tuple[Step, ...]

    @classmethod
    def from_config(cls, config: Any, name: str | None = None) -> EnsembleGraph:
        """Return the graph of a ``ModelConfig`` message with ``ensemble_scheduling``.

        Args:
            config: ``ModelConfig`` message with ``ensemble_scheduling``.
            name: Name of the ensemble. Default: that of the message.
        """
        steps = tuple(
            Step(
                index,
                step.model_name,
                step.model_version,
                dict(step.input_map),
                dict(step.output_map),
            )
            for index, step in enumerate(config.ensemble_scheduling.step)
        )
        return cls(name or config.name, _names(config.input), _names(config.output), steps)

    @classmethod
    def from_model(cls, model: ModelFolder) -> EnsembleGraph:
        """Return the graph of an ensemble in a folder whose configuration parses.

        Args:
            model: Folder of the ensemble.
        """
        return cls.from_config(model.config, model.name)

    # --- writers and readers ----------------------------------------------------------------------

    @cached_property
    def producers(self) -> dict[str, tuple[Step, ...]]:
        """The steps that write each tensor, once for each output."""
        return _group((tensor, step) for step in self.steps for tensor in step.output_map.values())

    @cached_property
    def readers(self) -> dict[str, tuple[Step, ...]]:
        """The steps that read each tensor."""
        return _group((tensor, step) for step in self.steps for tensor in step.input_map.values())

    @cached_property
    def tensors(self) -> tuple[str, ...]:
        """Every tensor that a step writes or reads, in alphabetical order."""
        return tuple(sorted({*self.producers, *self.readers}))

    @cached_property
    def unproduced(self) -> tuple[str, ...]:
        """Tensors that are read or are outputs, and that nothing writes."""
        known = {*self.inputs, *self.producers}
        return tuple(
            tensor
            for tensor in dict.fromkeys((*self.tensors, *self.outputs))
            if tensor not in known
        )

    @cached_property
    def unread(self) -> tuple[str, ...]:
        """Tensors that a step writes, that no step reads, and that are not outputs."""
        known = {*self.readers, *self.outputs}
        return tuple(sorted(tensor for tensor in self.producers if tensor not in known))

    @cached_property
    def unused_inputs(self) -> tuple[str, ...]:
        """Inputs of the ensemble that no step uses."""
        used = {*self.producers, *self.readers}
        return tuple(name for name in self.inputs if name not in used)

    @cached_property
    def misspelled_writes(self) -> Mapping[str, str]:
        """The missing tensor that a step most likely means, by the tensor that it writes.

        The wrong name is the written one if the missing tensor is called like the model's output,
        is an output of the ensemble, or is read by several steps. A pair has one cause, so the
        checks report only one of its names.
        """
        pairs: dict[str, str] = {}
        for tensor in self.unread:
            meant = closest(tensor, self.unproduced)
            if meant is None or meant in pairs.values():
                continue
            is_needed = meant in self.outputs or len(self.readers.get(meant, ())) > 1
            if is_needed or self.producers[tensor][0].output_map.get(meant) == tensor:
                pairs[tensor] = meant
        return pairs

    @cached_property
    def misspelled_reads(self) -> Mapping[str, str]:
        """The unused tensor that a step or an output most likely means,
        by the missing one that it reads.
        """
        unused = [
            name
            for name in (*self.unread, *self.unused_inputs)
            if name not in self.misspelled_writes
        ]
        missing = [name for name in self.unproduced if name not in self.misspelled_writes.values()]
        pairs: dict[str, str] = {}
        for tensor in missing if unused else ():
            name = closest(tensor, unused)
            if name is None or name in pairs.values() or self._depends_on(name, tensor):
                continue
            pairs[tensor] = name
        return pairs

    def _depends_on(self, tensor: str, source: str) -> bool:
        """Whether a tensor is computed from another one, so that it cannot take its place."""
        reached = {source}
        waiting = [source]
        while waiting:
            for step in self.readers.get(waiting.pop(), ()):
                written = [name for name in step.output_map.values() if name not in reached]
                reached.update(written)
                waiting += written
        return tensor in reached

    @cached_property
    def in_cycle(self) -> tuple[str, ...]:
        """Tensors of a cycle, and tensors that depend on a cycle;
        without the unproduced tensors.
        """
        ready = self.ready_tensors((*self.inputs, *self.unproduced))
        return tuple(tensor for tensor in self.tensors if tensor not in ready)

    def ready_tensors(self, given: Iterable[str]) -> set[str]:
        """Return ``given`` and the tensors that can be computed from it.

        Args:
            given: Names of tensors that are known.
        """
        ready = set(given)
        for step in self._in_order(ready):
            ready.update(step.output_map.values())
        return ready

    def _in_order(self, given: Iterable[str]) -> Iterator[Step]:
        """Yield each step when its inputs are in ``given`` or are outputs of steps before it."""
        missing = {
            step.index: set(step.input_map.values()).difference(given) for step in self.steps
        }
        waiting = deque(step for step in self.steps if not missing[step.index])
        known = set(given)
        while waiting:
            step = waiting.popleft()
            yield step
            for tensor in dict.fromkeys(step.output_map.values()):
                readers = dict.fromkeys(reader.index for reader in self.readers.get(tensor, ()))
                for reader in () if tensor in known else readers:
                    missing[reader].discard(tensor)
                    if not missing[reader]:
                        waiting.append(self.steps[reader])
                known.add(tensor)

    def joins_decoupled_branches(self, decoupled_models: Collection[str]) -> tuple[Step, ...]:
        """Return steps with inputs from different decoupled models.

        These models may send different numbers of responses.

        Source: triton core, ValidateEnsembleConfig, decouple_label.

        Args:
            decoupled_models: Names of the decoupled models.
        """
        return self._decouple_labels(decoupled_models)[1]

    def has_outputs_of_different_branches(self, decoupled_models: Collection[str]) -> bool:
        """Return whether outputs come from different decoupled models. Source: as above.

        Args:
            decoupled_models: Names of the decoupled models.
        """
        labels = self._decouple_labels(decoupled_models)[0]
        return len({labels[name] for name in self.outputs if name in labels}) > 1

    def _decouple_labels(
        self, decoupled_models: Collection[str]
    ) -> tuple[dict[str, int], tuple[Step, ...]]:
        """Label each tensor with the decoupled step that it comes from;
        return steps with several labels.
        """
        labels = dict.fromkeys(self.inputs, 0)
        conflicting = []
        for step in self._in_order(self.inputs):
            branches = {labels[tensor] for tensor in step.input_map.values()}
            if len(branches) > 1:
                conflicting.append(step)
            label = (
                step.index + 1 if step.model_name in decoupled_models else min(branches, default=0)
            )
            for tensor in step.output_map.values():
                labels.setdefault(tensor, label)
        return labels, tuple(conflicting)

    # --- printing ---------------------------------------------------------------------------------

    def to_text(self) -> str:
        """Return the graph as text, with one line for each step."""
        lines = [f"{self.name}: {', '.join(self.inputs)} -> {', '.join(self.outputs)}"]
        for step in self.steps:
            reads = ", ".join(f"{name}={tensor}" for name, tensor in sorted(step.input_map.items()))
            writes = ", ".join(
                f"{name}={tensor}" for name, tensor in sorted(step.output_map.items())
            )
            lines.append(f"  {step.index + 1}. {step.model_name}({reads}) -> {writes}")
        return "\n".join(lines)

    def to_mermaid(self) -> str:
        """Return the graph as a Mermaid flowchart, with tensors as arrows and steps as boxes."""
        lines = ["flowchart LR"]
        lines += [f'  in{i}(["{_escape(name)}"])' for i, name in enumerate(self.inputs)]
        lines += [f'  step{step.index}["{_escape(step.model_name)}"]' for step in self.steps]
        lines += [f'  out{i}(["{_escape(name)}"])' for i, name in enumerate(self.outputs)]
        for tensor in dict.fromkeys((*self.inputs, *self.tensors, *self.outputs)):
            lines += self._arrows(tensor)
        return "\n".join(lines)

    def _arrows(self, tensor: str) -> list[str]:
        """Return the lines of a Mermaid graph from each writer of a tensor to each reader."""
        sources = [f"step{step.index}" for step in self.producers.get(tensor, ())]
        sources += [f"in{index}" for index, name in enumerate(self.inputs) if name == tensor]
        targets = [f"step{step.index}" for step in self.readers.get(tensor, ())]
        targets += [f"out{index}" for index, name in enumerate(self.outputs) if name == tensor]
        arrow = f'-->|"{_escape(tensor)}"|'
        return [f"  {source} {arrow} {target}" for source, target in product(sources, targets)]

    def __str__(self) -> str:
        return self.to_text()


def _names(tensors: Iterable[Any]) -> tuple[str, ...]:
    return tuple(tensor.name for tensor in tensors)


def _group(pairs: Iterable[tuple[str, Step]]) -> dict[str, tuple[Step, ...]]:
    found: dict[str, list[Step]] = {}
    for tensor, step in pairs:
        found.setdefault(tensor, []).append(step)
    return {tensor: tuple(steps) for tensor, steps in found.items()}


def _escape(text: str) -> str:
    """Escape a string for Mermaid's quotes."""
    return text.replace("&", "#amp;").replace('"', "#quot;").replace("<", "#lt;").replace("\n", " ")


def find_cycles(followers: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Return the groups of nodes that reach each other, among them nodes that follow themselves.

    ``followers`` has every node as a key. The algorithm is Kosaraju's, without recursion: nodes in
    one strongly connected component reach each other.
    """
    predecessors: dict[str, list[str]] = {node: [] for node in followers}
    for node, after in followers.items():
        for each in after:
            predecessors[each].append(node)
    seen: set[str] = set()
    found = []
    for root in reversed(list(_in_finishing_order(followers))):
        if root not in seen:
            component = _reach(root, predecessors, seen)
            if len(component) > 1 or root in followers[root]:
                found.append(component)
    return found


def _in_finishing_order(followers: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield each node after all that can be reached from it, except in circles."""
    seen: set[str] = set()
    for root in followers:
        stack = [] if root in seen else [(root, iter(followers[root]))]
        seen.add(root)
        while stack:
            node, rest = stack[-1]
            following = next((each for each in rest if each not in seen), None)
            if following is None:
                yield node
                stack.pop()
            else:
                seen.add(following)
                stack.append((following, iter(followers[following])))


def _reach(root: str, predecessors: Mapping[str, Sequence[str]], seen: set[str]) -> list[str]:
    """Return what reaches ``root`` and is not in ``seen``; add it to ``seen``."""
    seen.add(root)
    found = [root]
    for node in found:
        new = [each for each in dict.fromkeys(predecessors[node]) if each not in seen]
        seen.update(new)
        found += new
    return found
