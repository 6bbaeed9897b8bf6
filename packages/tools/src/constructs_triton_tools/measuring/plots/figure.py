"""One look for all figures: a white slide with large letters and few lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constructs_triton_core.errors import InvalidValueError, MissingDependencyError
from constructs_triton_core.untrusted.written_files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The palette of Okabe and Ito, which people with color blindness can tell apart.
BLUE, ORANGE, GREEN, RED, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#8A8A8A"
PALETTE = (BLUE, ORANGE, GREEN, "#CC79A7", "#56B4E9", "#7A5195", GREY, "#000000")
# On a dark page an SVG has a dark background and light letters, and its colors keep their hue.
_DARK = "@media (prefers-color-scheme: dark) {svg {filter: invert(0.9) hue-rotate(180deg)}}"
_ENDINGS = (".svg", ".png", ".pdf")
_INCHES = (9.6, 5.4)  # 16:9
_MARGIN = 0.15  # inches
_TICKS = 4  # at least, on a logarithmic axis
_STYLE: dict[str, Any] = {
    "font.size": 12,
    "axes.titlesize": 15,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 26,
    "axes.labelsize": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "text.parse_math": False,  # names may contain dollar signs
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "legend.frameon": False,
    # The same figure has the same bytes.
    "svg.hashsalt": "constructs-triton",
    "savefig.dpi": 160,
}


def check_path(path: str | PathLike[str]) -> Path:
    """Return the path of a figure."""
    file = Path(path)
    if file.suffix.lower() not in _ENDINGS:
        raise InvalidValueError(
            f"plot: must end in {', '.join(_ENDINGS)}, got {file.name}; rename the file"
        )
    if not file.absolute().parent.is_dir():
        raise InvalidValueError(f"plot: the folder {file.parent} does not exist; create it")
    _import_matplotlib()
    return file


@contextmanager
def draw(path: str | PathLike[str], title: str, subtitle: str) -> Iterator[Axes]:
    """Give the axes of a figure to draw on, and write the figure afterwards.

    Raises:
        InvalidValueError: the file cannot be written, or has another ending than a supported
            format.
        MissingDependencyError: matplotlib is not installed.
    """
    with _write_figure(path, _INCHES) as figure:
        axes = figure.add_subplot()
        axes.set_title(shortened(title, 150))
        axes.text(0, 1.025, subtitle, transform=axes.transAxes, color="#555555", fontsize=11)
        yield axes


@contextmanager
def draw_panels(
    path: str | PathLike[str], title: str, titles: Sequence[str]
) -> Iterator[list[Axes]]:
    """Give the axes of panels beside each other, each with a title,
    and write the figure afterwards.
    """
    inches = (_INCHES[0] * (1 + len(titles)) / 2, _INCHES[1])
    with _write_figure(path, inches) as figure:
        figure.suptitle(shortened(title, 200), x=0.01, ha="left", fontsize=14, fontweight="bold")
        panels = [figure.add_subplot(1, len(titles), number + 1) for number in range(len(titles))]
        for axes, text in zip(panels, titles, strict=True):
            axes.set_title(text, fontsize=12, pad=10)
        yield panels


@contextmanager
def _write_figure(path: str | PathLike[str], inches: tuple[float, float]) -> Iterator[Figure]:
    """Give a figure in the style of all figures, and write it afterwards."""
    file = check_path(path)
    matplotlib = _import_matplotlib()
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    with matplotlib.rc_context():
        # Those of a matplotlibrc in the current folder could start programs, such as LaTeX.
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        layout = ConstrainedLayoutEngine(w_pad=_MARGIN, h_pad=_MARGIN)
        figure = Figure(figsize=inches, layout=layout)
        yield figure
        is_svg = file.suffix.lower() == ".svg"
        try:
            picture = BytesIO()
            metadata = {"Date": None} if is_svg else {}
            figure.savefig(picture, format=file.suffix[1:].lower(), metadata=metadata)
            content = picture.getvalue()
            if is_svg:
                content = content.replace(b"</style>", f"{_DARK}</style>".encode(), 1)
            write_whole(file, content)
        except OSError as error:
            raise InvalidValueError(
                f"{file}: cannot be written ({error.strerror}); give another path"
            ) from None


def shortened(text: str, length: int = 60) -> str:
    """Return the beginning of a name: a long one would leave no room for the axes."""
    return text if len(text) <= length else f"{text[:length]}…"


def set_plain_ticks(axis: Any, low: float, high: float) -> None:
    """Label a logarithmic axis with plain numbers such as 20,
    50 and 1,000 instead of powers of ten.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    shown: list[float] = []
    for digits in ((1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7), range(1, 10)):
        steps = [digit * 10**power for power in range(-3, 9) for digit in digits]
        shown = [step for step in steps if low <= step <= high]
        if len(shown) >= _TICKS:
            break
    axis.set_major_locator(FixedLocator(shown))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def _import_matplotlib() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise MissingDependencyError(
            "matplotlib is not installed; run `pip install 'constructs-triton[plots]'`"
        ) from None
    return matplotlib
