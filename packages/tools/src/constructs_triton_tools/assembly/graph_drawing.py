"""Draws the graph of a stack as SVG: a column for each kind of node,
readable on light and dark pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain

from constructs_triton_core.visible_text import visible
from constructs_triton_tools.assembly.service_graph import Edge, Kind, Node, ServiceGraph

_COLUMNS: tuple[Kind, ...] = ("caller", "endpoint", "variant", "component", "model", "storage")
#: Callers and components of a stack that are drawn; there can be hundreds.
_MOST = 12
_LONGEST_LINE = 40
_CHARACTER = 6.8
_LINE = 17
_PADDING = 12
_BETWEEN = 16
_ARROW = 104
_TITLE = 30
#: DejaVu Sans, the widest of the fonts, is this much wider in bold.
_BOLD_CHARACTER = 8.2
_STYLE = """
svg {
  --ground: #ffffff; --text: #1a1f27; --quiet: #5a6472; --box: #f1f3f6; --accent: #1a5fb4; \
--wait: #8a5a00;
  font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
}
@media (prefers-color-scheme: dark) {
  svg { --ground: #191d23; --text: #e4e8ee; --quiet: #a0aab8; --box: #262c35; --accent: #7ab3ff; }
  svg { --wait: #e6b450; }
}
text { fill: var(--text); }
.ground { fill: var(--ground); }
.title, .first { font-weight: 600; }
.label { fill: var(--quiet); font-size: 11px; stroke: var(--ground); stroke-width: 4px; \
paint-order: stroke; }
.box { fill: var(--box); stroke: var(--quiet); }
.endpoint .box { stroke: var(--accent); stroke-width: 2px; }
.caller .box { rx: 16px; }
.scaling .box { fill: none; stroke: var(--wait); stroke-dasharray: 4 3; }
.edge { fill: none; stroke: var(--quiet); stroke-width: 1.3px; marker-end: url(#head); }
.head { fill: var(--quiet); }
"""


@dataclass(frozen=True, slots=True)
class _Box:
    x: float
    y: float
    width: float
    height: float


def draw_graphs(graphs: Sequence[ServiceGraph]) -> str:
    """Return an SVG file with the stacks below each other."""
    parts: list[str] = []
    width = 0.0
    y = float(_PADDING)
    for graph in graphs:
        drawing = _Drawing(_shortened(graph), y + _TITLE)
        parts += [_text(_PADDING, y + 16, graph.stack, "title"), *drawing.lines()]
        width = max(width, drawing.width)
        y = drawing.bottom + _BETWEEN
    width += _PADDING
    names = escape(visible(", ".join(drawn.stack for drawn in graphs)))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {y:g}" '
            f'width="{width:g}" role="img">',
            f"<title>What the endpoints of {names} serve</title>",
            f"<style>{_STYLE}</style>",
            (
                '<defs><marker id="head" markerWidth="8" markerHeight="8" refX="7" refY="4" '
                'orient="auto"><path class="head" d="M0,0 L8,4 L0,8 z"/></marker></defs>'
            ),
            '<rect class="ground" width="100%" height="100%"/>',
            *parts,
            "</svg>\n",
        ]
    )


class _Drawing:
    """The boxes of a stack: what a node leads to is on its right, what scales it is below it."""

    def __init__(self, graph: ServiceGraph, top: float) -> None:
        self._graph = graph
        self._nodes = {node.key: node for node in graph.nodes}
        self._lines = {
            node.key: list(chain.from_iterable(map(_wrapped, node.lines))) for node in graph.nodes
        }
        self._left: dict[Kind, float] = {}
        self._widths: dict[Kind, float] = {}
        self.width = self._set_columns()
        self._boxes: dict[str, _Box] = {}
        self.bottom = top
        # What no endpoint leads to, such as an adapter of another stack's base, is below the
        # endpoints.
        for node in sorted(graph.nodes, key=lambda each: each.kind != "endpoint"):
            if node.key not in self._boxes:
                self.bottom = self._place(node, self.bottom) + _BETWEEN

    def _set_columns(self) -> float:
        x = float(_PADDING)
        for kind in _COLUMNS:
            found = [node for node in self._graph.nodes if self._column(node) == kind]
            if found:
                self._left[kind] = x
                self._widths[kind] = max(self._text_width(node) for node in found) + 2 * _PADDING
                x += self._widths[kind] + _ARROW
        return x - _ARROW

    def _text_width(self, node: Node) -> float:
        """Return the room that the lines of a node need; the first one is bold."""
        first, *others = self._lines[node.key]
        return max([len(first) * _BOLD_CHARACTER, *(len(line) * _CHARACTER for line in others)])

    def _column(self, node: Node) -> Kind:
        """Return the column of a node; scaling is in that of what it scales."""
        if node.kind != "scaling":
            return node.kind
        return next(
            self._nodes[edge.end].kind for edge in self._graph.edges if edge.start == node.key
        )

    def _place(self, node: Node, top: float) -> float:
        """Place a node and what belongs to it, and return the y of the lowest edge."""
        column = self._column(node)
        height = len(self._lines[node.key]) * _LINE + _PADDING
        self._boxes[node.key] = _Box(self._left[column], top, self._widths[column], height)
        below = bottom = top + height
        for user in self._linked(node, "scaling"):
            below = self._place(user, below + _BETWEEN)
        left = top
        right = top
        for user in [
            neighbour
            for neighbour in self._linked(node, "caller")
            if neighbour.key not in self._boxes
        ]:
            left = self._place(user, left) + _BETWEEN
        for edge in self._graph.edges:
            if edge.start == node.key and edge.end not in self._boxes:
                right = self._place(self._nodes[edge.end], right) + _BETWEEN
        return max(bottom, below, left - _BETWEEN, right - _BETWEEN)

    def _linked(self, node: Node, kind: Kind) -> Iterator[Node]:
        for edge in self._graph.edges:
            if edge.end == node.key and self._nodes[edge.start].kind == kind:
                yield self._nodes[edge.start]

    def lines(self) -> Iterator[str]:
        """Yield the elements: arrows first, so that boxes are over them, then their labels."""
        keys = self._boxes.keys()
        placed = [edge for edge in self._graph.edges if {edge.start, edge.end} <= keys]
        for edge in placed:
            yield f'<path class="edge" d="{self._path(edge)}"/>'
        for key, box in self._boxes.items():
            yield f'<g class="{self._nodes[key].kind}">'
            size = f'width="{box.width:g}" height="{box.height:g}"'
            yield f'<rect class="box" x="{box.x:g}" y="{box.y:g}" {size} rx="5"/>'
            for number, line in enumerate(self._lines[key]):
                kind = "first" if number == 0 else ""
                yield _text(box.x + _PADDING, box.y + 18 + number * _LINE, line, kind)
            yield "</g>"
        for edge in placed:
            if edge.text and self._nodes[edge.start].kind != "scaling":
                end = self._boxes[edge.end]
                yield _text(end.x - 12, _middle(end) - 6, edge.text, "label", "end")

    def _path(self, edge: Edge) -> str:
        start = self._boxes[edge.start]
        end = self._boxes[edge.end]
        if start.x == end.x:
            middle = start.x + start.width / 2
            return f"M{middle:g},{start.y:g} V{end.y + end.height:g}"
        x1 = start.x + start.width
        x2 = end.x
        bend = (x2 - x1) / 2
        y1 = _middle(start)
        y2 = _middle(end)
        return f"M{x1:g},{y1:g} C{x1 + bend:g},{y1:g} {x2 - bend:g},{y2:g} {x2:g},{y2:g}"


def _middle(box: _Box) -> float:
    return box.y + min(box.height, _LINE + _PADDING) / 2


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{named}>{escape(visible(text))}</text>'


def _wrapped(text: str) -> Iterator[str]:
    """Yield a text in lines, which end after a separator where there is one."""
    while len(text) > _LONGEST_LINE:
        cut = 1 + max(text.rfind(mark, _LONGEST_LINE // 2, _LONGEST_LINE) for mark in " /-:.")
        cut = cut or _LONGEST_LINE
        yield text[:cut].rstrip()
        text = text[cut:]
    yield text


def _moved(edge: Edge, others: set[str], more: Node) -> Edge:
    """Return an edge from or to the node that stands for the others."""
    if edge.start in others:
        return Edge(more.key, edge.end)
    return Edge(edge.start, more.key)


def _shortened(graph: ServiceGraph) -> ServiceGraph:
    """Return a graph with the first callers and components,
    and one node for the others of each kind.
    """
    keys = {node.key for node in graph.nodes}
    nodes = list(graph.nodes)
    edges = [edge for edge in graph.edges if {edge.start, edge.end} <= keys]
    for kind in ("caller", "component"):
        of_kind = [node.key for node in graph.nodes if node.kind == kind]
        others = set(of_kind[_MOST:])
        if not others:
            continue

        more = Node(f"more {kind}", kind, (f"and {len(others):,} more",))
        kept = [edge for edge in edges if not {edge.start, edge.end} & others]
        moved = []
        for edge in edges:
            key = edge.start if kind == "caller" else edge.end
            if key in others and edge.text != "scales":
                moved.append(_moved(edge, others, more))
        edges = [*kept, *dict.fromkeys(moved)]

        # What only those others use is not drawn either.
        used = {edge.start for edge in edges} | {edge.end for edge in edges}
        nodes = [
            node
            for node in (*nodes, more)
            if node.key not in others and (node.kind == "endpoint" or node.key in used)
        ]
    return ServiceGraph(graph.stack, nodes, edges)
