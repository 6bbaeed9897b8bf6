"""Finds the cycles of a graph in linear time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence


def find_cycles(followers: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Return the groups of nodes that reach each other, among them nodes that follow themselves.

    ``followers`` has every node as a key. The algorithm is Kosaraju's, without recursion: nodes in one
    strongly connected component reach each other.
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
