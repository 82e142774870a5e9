"""Who wins, by how much, how sure that is, and on which set a method is weakest; in words, as HTML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from outword.base.html import fill
from outword_lab.benchmark.run.results import Condition, Outcome
from outword_lab.benchmark.show.summary import Lead, leads, measured_sets, on_set, paper_entries, ranking, terms

NAMED = 5  # methods that are ahead somewhere
OWN = "the paper's method"


def verdict(outcome: Outcome, condition: Condition) -> Markup:
    """Who has the highest mean AUROC, by how much, how sure that is, and whether FPR95 agrees."""
    ranked, sets = ranking(outcome, condition), len(measured_sets(outcome))
    if not ranked:
        return Markup("No method has figures on all OOD sets.")
    best, figure = ranked[0]
    over = f"mean AUROC over {sets} OOD sets" if sets > 1 else "AUROC"
    named = _named(outcome, condition, best, "<b>{}</b>{}")
    first = fill("{} has the highest {}, <b>{}</b>.", named, over, _percent(figure))
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
        lead = found_leads[rival]
        points = f"{100 * lead.points:.2f} points" if lead.points >= 0.00005 else "less than 0.01 points"
        if rival in plain:
            named, mean = _named(outcome, condition, rival, "<b>{}</b>{}"), _percent(dict(others)[rival])
            first = "Of the methods that need names only, {} is the best, {}: {} behind {}"
            yield fill(first, named, mean, points, _doubt(lead))
        else:
            yield fill("It leads {} by {} {}", _named(outcome, condition, rival), points, _doubt(lead))


def _by_fpr95(outcome: Outcome, condition: Condition, best: str) -> Markup:
    ranked = ranking(outcome, condition, "fpr95_id")
    (other, lowest), own = ranked[0], dict(ranked)[best]
    if _same(own, lowest):
        return fill("{} is the best by FPR95, too: {}.", best, _percent(own))
    named = _named(outcome, condition, other)
    return fill("By FPR95 the best is {}, {}; {} has {}.", named, _percent(lowest), best, _percent(own))


def weakness(outcome: Outcome, condition: Condition, method: str) -> Markup:
    """The OOD set with a method's lowest AUROC, and who is ahead of it there."""
    by_set = {ood: _on_set(outcome, condition, ood) for ood in measured_sets(outcome)}
    ood, figures = min(by_set.items(), key=lambda pair: pair[1][method])
    ahead = sorted((name for name in figures if figures[name] > figures[method]), key=lambda name: -figures[name])
    how = "weakest" if len(by_set) > 1 else "measured"
    first = fill("{} is {} on {}: AUROC {}.", method, how, outcome.title(ood), _percent(figures[method]))
    if not ahead:
        return first + " No other method is ahead of it there."
    top, *rest = ahead
    named = [fill("{} with {}", _named(outcome, condition, top, "<b>{}</b>{}"), _percent(figures[top]))]
    named += [_named(outcome, condition, name) for name in rest[: NAMED - 1]]
    more = [fill("{} more", len(ahead) - NAMED)] if len(ahead) > NAMED else []
    return fill("{} Ahead of it there: {}.", first, _listed([*named, *more]))


def _on_set(outcome: Outcome, condition: Condition, ood: str) -> dict[str, float]:
    """AUROC on a set of the methods that have figures on all sets."""
    ranked = {
        name: on_set(outcome.select(condition, entry=name), ood, "auroc") for name, _ in ranking(outcome, condition)
    }
    return {name: value.mean for name, value in ranked.items() if value}


def _terms(outcome: Outcome, condition: Condition, method: str) -> list[str]:
    return terms(outcome.select(condition, entry=method)[0])


def _named(outcome: Outcome, condition: Condition, method: str, pattern: str = "{}{}") -> Markup:
    """A method, with what a reader should know of it in brackets."""
    own = [OWN] if method in paper_entries(outcome, condition)[:1] else []
    marks = "; ".join(own + _terms(outcome, condition, method))
    return fill(pattern, method, f" ({marks})" if marks else "")


def _doubt(lead: Lead) -> Markup:
    """How sure a lead is."""
    low, high, share = (f"{100 * lead.low:.2f}", f"{100 * lead.high:.2f}", f"{100 * lead.share:.1f}")
    sentence = "(95 % interval for all pairs at once {} to {}{}; {} is ahead in {} % of the samples){}."
    few = ", 3 in n at least, as hardly a photo is ranked wrong" if lead.few_errors else ""
    separable = "" if lead.separable else Markup(": <b>not separable</b>, as the interval contains 0")
    return fill(sentence, low, high, few, lead.ahead, share, separable)


def _same(one: float, other: float) -> bool:
    return abs(one - other) < 1e-12  # rounding of a mean


def _percent(figure: float) -> Markup:
    return Markup(f"{100 * figure:.2f}\N{NO-BREAK SPACE}%")


def _listed(names: Sequence[str]) -> Markup:
    """Names in a sentence: "a", "a and b", or "a, b and c"."""
    return Markup(" and ").join([Markup(", ").join(names[:-1]), names[-1]] if len(names) > 1 else names)
