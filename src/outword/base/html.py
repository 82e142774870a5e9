"""Pages from templates, the .html files of the package: what they are given stays text, whatever is in it."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


def render(template: str, package: str = "outword", /, **values: Any) -> Markup:
    """The HTML of a template, by its place in a package, such as "scoring/page.html", filled with values.

    Templates of another package find those of this one, too.
    """
    from markupsafe import Markup

    return Markup(_environment(package).get_template(template).render(values))


def fill(sentence: str, *values: Any) -> Markup:
    """A sentence of HTML with values in the place of each {}; what is HTML already stays as it is.

    >>> fill("<b>{}</b> is {}", "a<b", fill("<i>{}</i>", 1))
    Markup('<b>a&lt;b</b> is <i>1</i>')
    """
    from markupsafe import Markup

    return Markup(sentence).format(*map(_shown, values))


def visible(text: str) -> str:
    """A text in one line, with what cannot be seen or encoded as an escape.

    >>> print(visible("a\\nb\\udce9"))
    a\\nb\\udce9
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def _shown(value: Any) -> Any:
    """What stands on a page for a value: control and bidirectional characters would change how the rest is read."""
    return value if hasattr(value, "__html__") else visible(str(value))


@cache
def _environment(package: str) -> Environment:
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name, ".") for name in dict.fromkeys((package, "outword"))]),
        autoescape=True,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    filters: dict[str, Callable[[Any], str]] = {
        "base64": lambda data: base64.b64encode(data).decode("ascii"),
        "json": lambda value: json.dumps(value, indent=2),
        "number": lambda count: f"{count:,}",
        "percent": lambda share: f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %",
        "score": lambda value: f"{value:.4f}" if value == 0 or 1e-3 <= abs(value) < 1e4 else f"{value:.3g}",
    }
    environment.filters.update(filters)
    return environment
