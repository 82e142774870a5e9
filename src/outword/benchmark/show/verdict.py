"""Who wins, by how much, how sure that is, and on which set a method is weakest; in words, as HTML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from outword.base.html import fill
from outword.benchmark.run.results import Condition, Outcome
from outword.benchmark.show.summary import (
    Lead,
    leads,
    measured_sets,
    on_set,
    paper_entries,
    ranking,
    terms,
    title,
)

NAMED = 5  # methods that are ahead somewhere
OWN = "the paper's method"


def verdict(outcome: Outcome, condition: Condition) -> Markup:
    """Who has the highest mean AUROC, by how much, how sure that is, and whether FPR95 agrees."""
    ranked, sets = ranking(outcome, condition), len(measured_sets(outcome))
    if not ranked:
        return Markup("No method has figures on all OOD sets.")
    best, figure = ranked[0]
    over = f"mean AUROC over {sets} OOD sets" if sets > 1 else "AUROC"
    marks = _marks(outcome, condition, best)
    first = fill("<b>{}</b>{} has the highest {}, <b>{}</b>.", best, marks, over, _percent(figure))
    if len(ranked) == 1:
        return first + " No other method was measured."
    return Markup(" ").join([first, *_leads(outcome, condition), _by_fpr95(outcome, condition, best)])


def _leads(outcome: Outcome, condition: Condition) -> Iterator[Markup]:
    """A sentence on those that are as good, on the next one, the paper's method and the best that needs names only."""
    (best, figure), *others = ranking(outcome, condition)
    found_leads = leads(outcome, condition)
    tied = [name for name, own in others if _same(own, figure)]
    if tied:
        yield fill("It is tied with {}.", _listed([_named(outcome, condition, name) for name in tied]))
    behind = [name for name, _ in others if name not in tied]
    plain = [name for name in behind if not _terms(outcome, condition, name)][:1]
    if any(not _terms(outcome, condition, name) for name in (best, *tied)):
        plain = []  # one that needs names only is in front
    own = [name for name in paper_entries(outcome, condition)[:1] if name in behind]
    for rival in dict.fromkeys([*behind[:1], *own, *plain]):
        found, marks = found_leads[rival], _marks(outcome, condition, rival)
        points, doubt = _points(found), _doubt(found)
        if rival in plain:
            first = "Of the methods that need names only, <b>{}</b>{} is the best, {}: {} behind {}"
            yield fill(first, rival, marks, _percent(dict(others)[rival]), points, doubt)
        else:
            yield fill("It leads {}{} by {} {}", rival, marks, points, doubt)


def _by_fpr95(outcome: Outcome, condition: Condition, best: str) -> Markup:
    ranked = ranking(outcome, condition, "fpr95_id")
    (other, lowest), own = ranked[0], dict(ranked)[best]
    if _same(own, lowest):
        return fill("{} is the best by FPR95, too: {}.", best, _percent(own))
    named = _named(outcome, condition, other)
    return fill("By FPR95 the best is {}, {}; {} has {}.", named, _percent(lowest), best, _percent(own))


def weakness(outcome: Outcome, condition: Condition, method: str) -> Markup:
    """The OOD set with a method's lowest AUROC, and who is ahead of it there."""
    sets = measured_sets(outcome)
    figures = {ood: _on_set(outcome, condition, method, ood) for ood in sets}
    ood = min(sets, key=lambda name: figures[name])
    others = {name: _on_set(outcome, condition, name, ood) for name, _ in ranking(outcome, condition)}
    ahead = sorted((name for name in others if others[name] > figures[ood]), key=lambda name: -others[name])
    how = "weakest" if len(sets) > 1 else "measured"
    first = fill("{} is {} on {}: AUROC {}.", method, how, title(outcome, ood), _percent(figures[ood]))
    if not ahead:
        return first + " No other method is ahead of it there."
    top, *rest = ahead
    named = [fill("<b>{}</b>{} with {}", top, _marks(outcome, condition, top), _percent(others[top]))]
    named += [_named(outcome, condition, name) for name in rest[: NAMED - 1]]
    more = [fill("{} more", len(ahead) - NAMED)] if len(ahead) > NAMED else []
    return fill("{} Ahead of it there: {}.", first, _listed([*named, *more]))


def _on_set(outcome: Outcome, condition: Condition, method: str, ood: str) -> float:
    value = on_set(outcome.select(condition, entry=method), ood, "auroc")
    assert value is not None  # the ranking has only those that have all sets
    return value.mean


def _terms(outcome: Outcome, condition: Condition, method: str) -> list[str]:
    return terms(outcome.select(condition, entry=method)[0])


def _marks(outcome: Outcome, condition: Condition, method: str) -> str:
    """What a reader should know of a method, in brackets."""
    own = [OWN] if method in paper_entries(outcome, condition)[:1] else []
    remarks = "; ".join(own + _terms(outcome, condition, method))
    return f" ({remarks})" if remarks else ""


def _named(outcome: Outcome, condition: Condition, method: str) -> Markup:
    return fill("{}{}", method, _marks(outcome, condition, method))


def _points(found: Lead) -> str:
    return f"{100 * found.points:.2f} points" if found.points >= 0.00005 else "less than 0.01 points"


def _doubt(found: Lead) -> Markup:
    return fill(
        "(95 % interval for all pairs at once {} to {}; {} is ahead in {} % of the samples){}.",
        *(f"{100 * end:.2f}" for end in (found.low, found.high)),
        found.ahead,
        f"{100 * found.share:.1f}",
        "" if found.separable else Markup(": <b>not separable</b>, as the interval contains 0"),
    )


def _same(one: float, other: float) -> bool:
    return abs(one - other) < 1e-12  # rounding of a mean


def _percent(figure: float) -> Markup:
    return Markup(f"{100 * figure:.2f}\N{NO-BREAK SPACE}%")


def _listed(names: Sequence[str]) -> Markup:
    """Names in a sentence.

    >>> print(_listed(["a"]), _listed(["a", "b"]), _listed(["a", "b", "c"]), sep="; ")
    a; a and b; a, b and c
    """
    return Markup(" and ").join([Markup(", ").join(names[:-1]), names[-1]] if len(names) > 1 else names)
