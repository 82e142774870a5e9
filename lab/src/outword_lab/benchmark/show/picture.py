"""A figure of several panels, which can be drawn and saved together or one by one; no state of pyplot is touched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outword.base.extras import require
from outword.base.files import whole_file
from outword.base.html import visible

# Okabe and Ito's colours, which people of any colour vision can tell apart.
BLUE, VERMILLION, GREEN, SKY, PURPLE, ORANGE = "#0072B2", "#D55E00", "#009E73", "#56B4E9", "#CC79A7", "#E69F00"
COLOURS, GREY = (BLUE, GREEN, PURPLE, SKY, ORANGE), "#666666"
DASHES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)))
AXIS_LABELS = {"auroc": "AUROC, % (higher is better)", "fpr95_id": "FPR95, % (lower is better)"}
PANELS = "panels"
STYLE = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "text.parse_math": False,  # a folder may be called a$b
    "svg.hashsalt": "outword",
    "savefig.facecolor": "white",
}


@dataclass(frozen=True)
class Picture:
    """A figure; each panel draws itself on axes, and gives the handles of a legend below the figure, if any."""

    name: str  # of its files
    title: str  # above all panels; "" for none
    panels: Sequence[Callable[[Any], Sequence[Any]]]
    columns: int  # panels side by side
    size: tuple[float, float]  # of a panel, width and height in inches

    def draw(self, panel: int | None = None) -> Any:
        """The figure, or a single panel of it."""
        drawn = self.panels if panel is None else [self.panels[panel]]
        columns = min(self.columns, len(drawn))
        rows = -(-len(drawn) // columns)
        width, height = columns * self.size[0], rows * self.size[1]
        figure = _matplotlib("matplotlib.figure").Figure((width, height), layout="constrained")
        handles: Sequence[Any] = ()
        for place, paint in enumerate(drawn):
            handles = paint(figure.add_subplot(rows, columns, place + 1))
        if handles:
            figure.legend(handles=handles, loc="outside lower center", ncols=3 if columns == 1 else len(handles))
        if self.title and panel is None:
            figure.suptitle(visible(self.title), fontsize=11)
        return figure

    def save(self, folder: Path) -> list[Path]:
        """Write the figure whole as SVG and PNG to `folder`, and its panels one by one to `folder`/panels."""
        (folder / PANELS).mkdir(parents=True, exist_ok=True)
        with _matplotlib("matplotlib").rc_context(STYLE):
            figure = self.draw()
            paths = [_write(figure, folder / f"{self.name}.{suffix}") for suffix in ("svg", "png")]
            for number in range(len(self.panels)):
                paths.append(_write(self.draw(number), folder / PANELS / f"{self.name}.{number + 1}.svg"))
        return paths


def legend_line(label: str, **style: Any) -> Any:
    """A line for a legend."""
    return _matplotlib("matplotlib.lines").Line2D([], [], label=label, **style)


def _matplotlib(module: str) -> Any:
    return require(module, "a plot", extra="bench")


def _write(figure: Any, path: Path) -> Path:
    kind = path.suffix.removeprefix(".")
    with whole_file(path) as temporary:
        figure.savefig(temporary, format=kind, dpi=160, metadata={"Date": None} if kind == "svg" else None)
    return path
