"""``constructs-triton graph``: draw what the endpoints of a template serve."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from constructs_triton_core.cloud_assembly.assembly import read_stacks
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.spelling import quoted
from constructs_triton_core.untrusted.terminal import print_lines, print_note
from constructs_triton_core.untrusted.written_files import write_whole
from constructs_triton_core.visible_text import visible
from constructs_triton_tools.assembly.graph_drawing import draw_graphs
from constructs_triton_tools.assembly.service_graph import Kind, ServiceGraph
from constructs_triton_tools.cli.assembly import add_template_arguments

# The shapes of Mermaid's flowcharts around a text in quotes.
_SHAPES: dict[Kind, tuple[str, str]] = {
    "caller": ("([", "])"),
    "endpoint": ("[[", "]]"),
    "variant": ("[", "]"),
    "component": ("[", "]"),
    "model": ("{{", "}}"),
    "storage": ("[(", ")]"),
    "scaling": ("[/", "/]"),
}
_SPECIAL = re.compile(r"[^\w .,:/()+%…-]")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Draw what the endpoints of an app serve, as a picture with --output, else as a Mermaid "
        "flowchart that GitHub shows in a pull request: who may call them, variants and "
        "components, models, S3 and scaling. Nothing is deployed, and AWS is not called."
    )
    add_template_arguments(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="write an SVG picture, such as app.svg"
    )
    form.add_argument(
        "--markdown",
        action="store_true",
        help="print a Markdown block for a comment or a job's summary",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the flowchart, or write the picture."""
    path: Path | None = arguments.output
    if path is not None and path.suffix.lower() != ".svg":
        raise InvalidValueError(f'--output: must end in .svg, got "{path}"; name an SVG file')
    graphs = [ServiceGraph.of(stack) for stack in read_stacks(arguments.template, arguments.stack)]
    drawn = [graph for graph in graphs if graph.nodes]
    if not drawn:
        names = quoted(graph.stack for graph in graphs)
        raise InvalidValueError(
            f"{arguments.template}: no endpoint in the stacks {names}; "
            "add an endpoint to the app, or draw other stacks"
        )
    if path is not None:
        _write(path, draw_graphs(drawn))
        return 0
    lines = list(mermaid(drawn))
    print_lines(*(["```mermaid", *lines, "```"] if arguments.markdown else lines))
    return 0


def _write(path: Path, content: str) -> None:
    try:
        write_whole(path, content)
    except OSError as error:
        raise InvalidValueError(
            f"{path}: cannot be written ({error.strerror}); name another file"
        ) from None
    print_note(f"wrote {path}")


def mermaid(graphs: Sequence[ServiceGraph]) -> Iterator[str]:
    """Yield the lines of a flowchart with a box for each stack."""
    yield "flowchart LR"
    for number, graph in enumerate(graphs, 1):
        ids = {node.key: f"s{number}n{index}" for index, node in enumerate(graph.nodes, 1)}
        yield f'  subgraph s{number}["{_escaped(graph.stack)}"]'
        for node in graph.nodes:
            opening, closing = _SHAPES[node.kind]
            text = "<br>".join(map(_escaped, node.lines))
            yield f'    {ids[node.key]}{opening}"{text}"{closing}'
        for edge in graph.edges:
            label = f'|"{_escaped(edge.text)}"|' if edge.text else ""
            if edge.start in ids and edge.end in ids:
                yield f"    {ids[edge.start]} -->{label} {ids[edge.end]}"
        yield "  end"


def _escaped(text: str) -> str:
    """Return text in which nothing is Mermaid's or HTML's syntax."""
    return _SPECIAL.sub(lambda found: f"#{ord(found.group())};", visible(text))
