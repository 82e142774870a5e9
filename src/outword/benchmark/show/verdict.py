"""Who wins, by how much, how sure that is, and on which set a method is weakest; in words, as HTML."""

from __future__ import annotations

from collections.abc import Iterator

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
from outword.scoring.page import escape

NAMED = 5  # methods that are ahead somewhere
OWN = "the paper's method"


def verdict(outcome: Outcome, condition: Condition) -> str:
    """Who has the highest mean AUROC, by how much, how sure that is, and whether FPR95 agrees."""
    ranked, sets = ranking(outcome, condition), len(measured_sets(outcome))
    if not ranked:
        return "No method has figures on all OOD sets."
    best, figure = ranked[0]
    over = f"mean AUROC over {sets} OOD sets" if sets > 1 else "AUROC"
    first = (
        f"<b>{escape(best)}</b>{_marks(outcome, condition, best)} has the highest {over}, <b>{_percent(figure)}</b>."
    )
    if len(ranked) == 1:
        return f"{first} No other method was measured."
    return " ".join([first, *_leads(outcome, condition), _by_fpr95(outcome, condition, best)])


def _leads(outcome: Outcome, condition: Condition) -> Iterator[str]:
    """A sentence on those that are as good, on the next one, the paper's method and the best that needs names only."""
    (best, figure), *others = ranking(outcome, condition)
    found_leads = leads(outcome, condition)
    tied = [name for name, own in others if _same(own, figure)]
    if tied:
        yield f"It is tied with {_listed([_named(outcome, condition, name) for name in tied])}."
    behind = [name for name, _ in others if name not in tied]
    plain = [name for name in behind if not _terms(outcome, condition, name)][:1]
    if any(not _terms(outcome, condition, name) for name in (best, *tied)):
        plain = []  # one that needs names only is in front
    own = [name for name in paper_entries(outcome, condition)[:1] if name in behind]
    for rival in dict.fromkeys([*behind[:1], *own, *plain]):
        found, marks = found_leads[rival], _marks(outcome, condition, rival)
        if rival in plain:
            told = (
                f"<b>{escape(rival)}</b>{marks} is the best, {_percent(dict(others)[rival])}: {_points(found)} behind"
            )
            yield f"Of the methods that need names only, {told} {_doubt(found)}"
        else:
            yield f"It leads {escape(rival)}{marks} by {_points(found)} {_doubt(found)}"


def _by_fpr95(outcome: Outcome, condition: Condition, best: str) -> str:
    ranked = ranking(outcome, condition, "fpr95_id")
    (other, lowest), own = ranked[0], dict(ranked)[best]
    if _same(own, lowest):
        return f"{escape(best)} is the best by FPR95, too: {_percent(own)}."
    named = _named(outcome, condition, other)
    return f"By FPR95 the best is {named}, {_percent(lowest)}; {escape(best)} has {_percent(own)}."


def weakness(outcome: Outcome, condition: Condition, method: str) -> str:
    """The OOD set with a method's lowest AUROC, and who is ahead of it there."""
    sets = measured_sets(outcome)
    figures = {ood: _on_set(outcome, condition, method, ood) for ood in sets}
    ood = min(sets, key=lambda name: figures[name])
    others = {name: _on_set(outcome, condition, name, ood) for name, _ in ranking(outcome, condition)}
    ahead = sorted((name for name in others if others[name] > figures[ood]), key=lambda name: -others[name])
    place = (
        f"weakest on {escape(title(outcome, ood))}" if len(sets) > 1 else f"measured on {escape(title(outcome, ood))}"
    )
    first = f"{escape(method)} is {place}: AUROC {_percent(figures[ood])}."
    if not ahead:
        return f"{first} No other method is ahead of it there."
    top, *rest = ahead
    named = [f"<b>{escape(top)}</b>{_marks(outcome, condition, top)} with {_percent(others[top])}"]
    named += [_named(outcome, condition, name) for name in rest[: NAMED - 1]]
    more = [f"{len(ahead) - NAMED} more"] if len(ahead) > NAMED else []
    return f"{first} Ahead of it there: {_listed([*named, *more])}."


def _on_set(outcome: Outcome, condition: Condition, method: str, ood: str) -> float:
    value = on_set(outcome.select(condition, entry=method), ood, "auroc")
    assert value is not None  # the ranking has only those that have all sets
    return value.mean


def _terms(outcome: Outcome, condition: Condition, method: str) -> list[str]:
    return terms(outcome.select(condition, entry=method)[0])


def _marks(outcome: Outcome, condition: Condition, method: str) -> str:
    """What a reader should know of a method, in brackets."""
    own = [OWN] if method in paper_entries(outcome, condition)[:1] else []
    told = "; ".join(own + _terms(outcome, condition, method))
    return f" ({told})" if told else ""


def _named(outcome: Outcome, condition: Condition, method: str) -> str:
    return escape(method) + _marks(outcome, condition, method)


def _points(found: Lead) -> str:
    return f"{100 * found.points:.2f} points" if found.points >= 0.00005 else "less than 0.01 points"


def _doubt(found: Lead) -> str:
    told = "" if found.separable else ": <b>not separable</b>, as the interval contains 0"
    return (
        f"(95 % interval for all pairs at once {100 * found.low:.2f} to {100 * found.high:.2f}; "
        f"{escape(found.ahead)} is ahead in {100 * found.share:.1f} % of the samples){told}."
    )


def _same(one: float, other: float) -> bool:
    return abs(one - other) < 1e-12  # rounding of a mean


def _percent(figure: float) -> str:
    return f"{100 * figure:.2f}\N{NO-BREAK SPACE}%"


def _listed(names: list[str]) -> str:
    """Names in a sentence.

    >>> _listed(["a"]), _listed(["a", "b"]), _listed(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
