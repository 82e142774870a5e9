"""Runs that never happened: scores drawn by chance, kept on disk the way a benchmark keeps them."""

import numpy as np

from outword.metrics import aupr, auroc, fpr_at_tpr
from outword_lab.benchmark.run.bootstrap import interval, resampled
from outword_lab.benchmark.run.results import Outcome, Results, Row, Worst
from outword_lab.benchmark.run.suite import Entry, Suite

MINI = ("folder", "mini", "")
VERSIONS = {"outword": "0.1", "numpy": "2.0"}


def config(entry, seed=0, encoder="mini", **method):
    """The part of a configuration that tables look at."""
    facts = {"name": entry, "parameters": {"tau": 0.5}, "needs": ["labels"], "sees_order": False, "on_vectors": {}}
    return {"method": facts | method, "encoder": {"name": encoder}, "learned": {"tau": 0.5}, "seed": seed}


def row(entry="debiased", ood="near", seed=0, auroc=0.9, fpr95_id=0.2, condition=MINI, **changes):
    """A row without scores behind it."""
    values = {
        **dict(zip(("id", "encoder", "corpus"), condition, strict=True)),
        **{"entry": entry, "ood": ood, "seed": seed, "auroc": auroc, "fpr95_id": fpr95_id},
        **{"key": f"{condition}{entry}{ood}{seed}", "cell": "none", "point": "", "chance": True},
        **{"n_id": 100, "n_ood": 50, "unread_id": 0, "unread_ood": 0},
        **{"aupr_id": 0.8, "aupr_ood": 0.7, "fpr95_ood": 0.4, "auroc_ci": (0.85, 0.95), "fpr95_ci": (0.1, 0.3)},
        **{"fit_seconds": 0.5, "score_seconds": 1.5, "config": config(entry, seed, condition[1])},
        **{"versions": VERSIONS, "commit": "0123abc"},
    }
    return Row(**{**values, **changes})


def suite(methods=("debiased", "mcm"), ood=("near", "far"), **changes):
    """A suite of these methods, by name or as they take part."""
    taken = tuple(Entry(one) if isinstance(one, str) else one for one in methods)
    values = {"name": "made", "title": "Made up", "id": ("folder",), "ood": tuple(ood), "methods": taken, "seeds": 2}
    return Suite(**{**values, **changes})


def run(
    folder,
    own=None,
    conditions=(MINI,),
    ahead=None,
    n=120,
    samples=50,
    fixed=(),
    worst=(),
    skipped=(),
    titles=None,
    points=None,
):
    """A run with scores: `ahead` is by how many deviations ID lies above OOD, by method; `fixed` are without chance.

    `points` gives for each point of a sweep what it adds to that.
    """
    own = own or suite()
    results, rows = Results(folder), []
    folder.mkdir(parents=True, exist_ok=True)
    for place, condition in enumerate(conditions):
        for point, more in (points or {"": 0.0}).items():
            for entry in own.methods:
                for seed in range(1 if entry.shown in fixed else own.seeds):
                    gap = (ahead or {}).get(entry.shown, 1.5) + more
                    cell = f"{place}-{entry.shown}-{point}-{seed}"
                    scores = _scores(own, gap, n, seed)
                    boot = resampled(scores["id"], {name: scores[f"ood/{name}"] for name in own.ood}, n_samples=samples)
                    arrays = scores | {f"boot/{name}": boot[name] for name in own.ood}
                    results.keep(cell, arrays, list(worst) if seed == 0 and not point else None)
                    rows += [
                        _measured(
                            scores, boot, name, entry.shown, seed, condition, cell, point, entry.shown not in fixed
                        )
                        for name in own.ood
                    ]
    return Outcome(own, folder, rows, skipped, titles or {})


def _scores(own, gap, n, seed):
    images, chance = np.random.default_rng(0), np.random.default_rng(seed + 1)

    def noisy(values):
        return values + 0.1 * chance.standard_normal(len(values))

    scores = {"id": noisy(images.standard_normal(n) + gap)}
    for place, name in enumerate(own.ood):
        scores[f"ood/{name}"] = noisy(images.standard_normal(n // 2) - 0.4 * place)
    return scores


def _measured(scores, boot, name, entry, seed, condition, cell, point, chance):
    inside, outside = scores["id"], scores[f"ood/{name}"]
    return row(
        entry,
        name,
        seed,
        auroc(inside, outside),
        fpr_at_tpr(inside, outside),
        condition,
        aupr_id=aupr(inside, outside),
        aupr_ood=aupr(inside, outside, positive="ood"),
        fpr95_ood=fpr_at_tpr(inside, outside, positive="ood"),
        auroc_ci=interval(boot[name][:, 0]),
        fpr95_ci=interval(boot[name][:, 1]),
        n_id=len(inside),
        n_ood=len(outside),
        cell=cell,
        point=point,
        chance=chance,
        key=f"{cell}-{name}",
    )


def wrong(path="ood/far/1.jpg", inside=False, **changes):
    """An image that a method gets wrong."""
    values = {"set": "folder" if inside else "far", "score": 1.25, "label": "tabby cat", "words": [("lynx", 0.5)]}
    return Worst(path=path, inside=inside, **{**values, **changes})
