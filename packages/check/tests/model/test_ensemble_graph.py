"""The graph of an ensemble."""

from __future__ import annotations

import random
from pathlib import Path

from check_examples import write
from cpu_limit import cpu_limit

from triton_model_check.model.ensemble_graph import EnsembleGraph, find_cycles
from triton_model_check.model_config.text import parse_model_config
from triton_model_check.model_repository import ModelRepository


def step(model: str, reads: dict[str, str], writes: dict[str, str]) -> str:
    """Return a step in the text format."""
    maps = [("input_map", reads), ("output_map", writes)]
    lines = [
        f'{name} {{ key: "{k}" value: "{v}" }}' for name, pairs in maps for k, v in pairs.items()
    ]
    return f'step {{ model_name: "{model}" model_version: -1 {" ".join(lines)} }}'


def graph(*steps: str, inputs: str = "IN", outputs: str = "OUT") -> EnsembleGraph:
    """Return the graph of an ensemble ``pipe`` with these steps."""
    names = [("input", inputs), ("output", outputs)]
    io = "".join(f'{kind} {{ name: "{name}" }} ' for kind, given in names for name in given.split())
    return EnsembleGraph.from_config(
        parse_model_config(f"{io} ensemble_scheduling {{ {' '.join(steps)} }}"), "pipe"
    )


CHAIN = (step("a", {"X": "IN"}, {"Y": "t"}), step("b", {"P": "t"}, {"Q": "OUT"}))


def test_producers_and_readers() -> None:
    """Each tensor has the steps that write and that read it, which may be in any order."""
    for chain in (graph(*CHAIN), graph(*reversed(CHAIN))):
        assert [step.model_name for step in chain.producers["t"]] == ["a"]
        assert [step.model_name for step in chain.readers["t"]] == ["b"]
        assert chain.unproduced == chain.unread == chain.unused_inputs == chain.in_cycle == ()


def test_faults_are_reported_once() -> None:
    """An unproduced tensor is reported without the tensors that depend on it."""
    broken = graph(step("a", {"X": "ghost"}, {"Y": "t"}), CHAIN[1])
    assert broken.unproduced == ("ghost",)
    assert broken.unused_inputs == ("IN",)
    assert broken.in_cycle == ()


def test_cycle_names_its_tensors() -> None:
    """The tensors of a cycle are found, with the tensors that depend on them."""
    loop = graph(
        step("j", {"U": "IN", "V": "t2"}, {"W": "t1"}),
        step("b", {"P": "t1"}, {"Q": "t2", "R": "OUT"}),
    )
    assert loop.in_cycle == ("OUT", "t1", "t2")


def test_decoupled_branches_may_not_join() -> None:
    """A step that joins a decoupled branch with the input is found;
    one decoupled branch is allowed.
    """
    joined = graph(CHAIN[0], step("j", {"U": "t", "V": "IN"}, {"W": "OUT"}))
    assert [step.model_name for step in joined.joins_decoupled_branches({"a"})] == ["j"]
    assert graph(*CHAIN).joins_decoupled_branches({"a"}) == ()


def test_prints_as_text_and_as_mermaid() -> None:
    """The text has one line for each step; Mermaid has the tensors on its arrows,
    with escaped names.
    """
    chain = graph(*CHAIN)
    assert str(chain).splitlines() == [
        "pipe: IN -> OUT",
        "  1. a(X=IN) -> Y=t",
        "  2. b(P=t) -> Q=OUT",
    ]
    assert chain.to_mermaid().splitlines() == [
        *("flowchart LR", '  in0(["IN"])', '  step0["a"]', '  step1["b"]', '  out0(["OUT"])'),
        *('  in0 -->|"IN"| step0', '  step1 -->|"OUT"| out0', '  step0 -->|"t"| step1'),
    ]
    odd = EnsembleGraph("p", ('a"<b',), (), ())
    assert odd.to_mermaid() == 'flowchart LR\n  in0(["a#quot;#lt;b"])'


def test_long_chain_is_ordered_in_linear_time() -> None:
    """Thousands of steps in the opposite order of their tensors are ordered."""
    count = 3000
    names = ["IN", *(f"t{index}" for index in range(count - 1)), "OUT"]
    steps = [step("a", {"X": names[index]}, {"Y": names[index + 1]}) for index in range(count)]
    chain = graph(*reversed(steps))
    with cpu_limit(3):
        assert chain.in_cycle == ()
        assert chain.joins_decoupled_branches({"a"}) == ()


def test_cycle_of_many_ensembles_is_found_in_linear_time(tmp_path: Path) -> None:
    """The cycle is reported once, with its ensembles, and without one that only leads to it."""
    count = 400
    for index in range(count + 1):
        following = (index + 1) % count if index < count else 0
        tensor = "data_type: TYPE_FP32 dims: 1"
        io = f'input {{ name: "IN" {tensor} }} output {{ name: "OUT" {tensor} }}'
        scheduled = step(f"e{following}", {"IN": "IN"}, {"OUT": "OUT"})
        text = f'platform: "ensemble" {io} ensemble_scheduling {{ {scheduled} }}'
        write({f"e{index}/config.pbtxt": text, f"e{index}/1": None}, tmp_path)
    (finding,) = ModelRepository.from_directory(tmp_path).check().findings
    assert (finding.code, finding.path) == ("ensemble-model-cycle", "e0/config.pbtxt")
    assert '"e0", "e1", "e10"' in finding.message
    assert f'"e{count}"' not in finding.message


def test_cycles_of_a_graph_agree_with_a_search_from_each_node() -> None:
    """Random graphs have the cycles that a slow search finds."""
    rng = random.Random(1)
    for _ in range(300):
        nodes = [str(index) for index in range(rng.randint(1, 8))]
        edges = {node: rng.sample(nodes, rng.randint(0, min(3, len(nodes)))) for node in nodes}
        found = find_cycles(edges)
        assert sum(map(len, found)) == len(set().union(*found))
        assert set().union(*found) == {node for node in nodes if node in reach(edges, edges[node])}
    long = {str(index): [str((index + 1) % 100_000)] for index in range(100_000)}
    assert [len(cycle) for cycle in find_cycles(long)] == [100_000]


def reach(edges: dict[str, list[str]], start: list[str]) -> set[str]:
    found: set[str] = set()
    waiting = list(start)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += edges[node]
    return found


def test_step_without_configuration_has_no_tensors(tmp_path: Path) -> None:
    """A Python step that has neither config.pbtxt nor auto_complete_config
    makes its ensemble fail.
    """
    scheduled = step("b", {"X": "IN"}, {"Y": "OUT"})
    tensor = "data_type: TYPE_FP32 dims: 1"
    files = {
        "a/config.pbtxt": f'platform: "ensemble" input {{ name: "IN" {tensor} }} '
        f'output {{ name: "OUT" {tensor} }} ensemble_scheduling {{ {scheduled} }}',
        "b/1/model.py": "class TritonPythonModel:\n    def execute(self, requests): ...\n",
    }
    report = ModelRepository.from_directory(write({**files, "a/1": None}, tmp_path)).check()
    unknown = [finding for finding in report.findings if finding.code == "ensemble-unknown-tensor"]
    found = [finding.message for finding in unknown]
    assert [finding.hint for finding in unknown] == ["add it to the model"] * 2
    assert (
        'step 1 ("b") input_map: ensemble tensor "IN" is mapped to non-existing input "X"' in found
    )
    assert report.verdict == "rejected"
