"""A figure of several panels, which can be drawn together or one by one; no state of pyplot is touched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from outword.base.extras import require
from outword.base.html import visible

# Okabe and Ito's colours, which people of any colour vision can tell apart.
BLUE, VERMILLION, GREEN, SKY, PURPLE, ORANGE = "#0072B2", "#D55E00", "#009E73", "#56B4E9", "#CC79A7", "#E69F00"
GREY = "#666666"
DASHES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)))


@dataclass(frozen=True)
class Picture:
    """A figure.

    Attributes:
        name: of its files.
        title: above all panels; "" for none.
        panels: each draws itself on axes, and gives the handles of a legend below the figure, if it wants one.
        columns: panels side by side.
        size: of a panel, width and height in inches.
    """

    name: str
    title: str
    panels: Sequence[Callable[[Any], Sequence[Any]]]
    columns: int
    size: tuple[float, float] = (3.9, 3.3)

    def draw(self, panel: int | None = None) -> Any:
        """The figure, or a single panel of it."""
        drawn = self.panels if panel is None else [self.panels[panel]]
        columns = min(self.columns, len(drawn))
        rows = -(-len(drawn) // columns)
        width, height = columns * self.size[0], rows * self.size[1]
        figure = require("matplotlib.figure").Figure((width, height), layout="constrained")
        handles: Sequence[Any] = ()
        for place, paint in enumerate(drawn):
            handles = paint(figure.add_subplot(rows, columns, place + 1))
        if handles:
            figure.legend(handles=handles, loc="outside lower center", ncols=3 if columns == 1 else len(handles))
        if self.title and panel is None:
            figure.suptitle(visible(self.title), fontsize=11)
        return figure
