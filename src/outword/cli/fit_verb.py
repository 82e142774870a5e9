"""`outword fit`: class names to a detector."""

from __future__ import annotations

import json
import math
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from outword.base.extras import install
from outword.base.terms import Flag, familiarity
from outword.base.wording import a_few, counted
from outword.cli.choices import Named
from outword.cli.options import (
    corpus_option,
    encoder_options,
    id_images_option,
    kinds_option,
    own_column_option,
    read_setting,
    without_encoder,
)
from outword.cli.progress import Progress, say, show, warn
from outword.errors import InputError, ParameterError
from outword.words.label_lists import STDIN
from outword.words.worn import means_persons

MINER = "miner."  # what the parameters of the miner begin with
NAMED = 20  # labels that something is said of
SHOWN = 8  # labels that a line names
EXAMPLE = '"cat, dog"'  # of labels
if TYPE_CHECKING:
    from outword.detector.detector import Detector
    from outword.detector.labels_report import LabelsReport
    from outword.words.kinds import Meaning
    from outword.words.labels import Label


@click.command("fit")
@click.argument("labels", type=click.Path())
@click.option("-o", "--output", type=click.Path(), help="Where to write the detector.  [default: LABELS.outword]")
@click.option("--encoder", default="mini", show_default=True, type=Named("encoders"), help="See: outword list encoders")
@corpus_option
@click.option(
    "--method",
    type=Named("methods"),
    help="See: outword list methods.  [default: grounded; with --set of tau and the like debiased, the paper's]",
)
@click.option("--miner", type=Named("miners"), help="How wild words are chosen.  [default: the method's own]")
@click.option(
    "--prompts",
    type=Named("prompts"),
    help="A name, or \"a photo of a {}\".  [default: the method's own, else the encoder's]",
)
@id_images_option
@click.option(
    "--word-images",
    type=click.Path(),
    help="Photos of other things, in folders named after them: lapt learns from them too.",
)
@click.option(
    "--contexts",
    type=click.Path(),
    help="A detector with learned prompts: LABELS are put behind its contexts, as it was made; nothing is learned.",
)
@kinds_option
@click.option(
    "--fpr",
    type=click.FloatRange(0, 1, max_open=True),
    help="The share of unrelated photos that may get in.  [default: 0.05; more where that balances both errors]",
)
@click.option("--keep-label-words", is_flag=True, help="Keep wild words about a label.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A parameter of the method, e.g. tau=0.4, or of the miner, e.g. miner.alpha=50.",
)
@own_column_option
@click.option("--json", "as_json", is_flag=True, help="Print what was made as JSON.")
@encoder_options
def command(
    labels: str,
    output: str | None,
    label_column: str | None,
    encoder: str,
    id_images: tuple[str, ...],
    contexts: str | None,
    settings: tuple[str, ...],
    as_json: bool,
    runtime: Mapping[str, Any],
    **options: Any,
) -> None:
    """Make a detector from LABELS: class names, in a file or typed.

    LABELS are a text file, one name a line, a CSV or JSON file, a folder of class folders, - for standard input, or
    the names themselves, with commas between them. A name may be "crane#bird", "sofa | couch" or "pet > cat | hamster",
    a line "name: prompt text"; what follows " #" is a comment. See docs/labels.md. Prints the path of the detector.

    \b
    Example:
      outword fit labels.txt -o pets.outword
      outword fit "cat, dog" -o pets.outword
      cut -f2 classes.tsv | outword fit - -o pets.outword --set tau=0.4
      outword fit labels.txt --method knn --id-images my-photos/
      outword fit labels.txt --method fa --id-images my-photos/ --encoder clip-vit-b-16
      outword fit other-labels.txt --contexts labels.outword
    """
    from outword.detector.artifact import CARD, check_target
    from outword.detector.fitting import fit
    from outword.encoders import get_encoder
    from outword.maths.methods import Need
    from outword.words.labels import read_labels

    names = read_labels(labels, column=label_column, say=say)
    given = dict(read_setting("--set", text, "tau=0.4") for text in settings)
    of_miner = {key.removeprefix(MINER): value for key, value in given.items() if key.startswith(MINER)}
    parameters = {key: value for key, value in given.items() if not key.startswith(MINER)}
    for key in parameters.keys() & {*options, "labels", "encoder", "id_images", "miner_params", "report"}:
        option = f"--{key.replace('_', '-')}"
        raise ParameterError(f"{key} is no parameter of the method", hint=f'see {option} in "outword fit --help"')
    target = output or f"{_stem(labels)}.outword"
    replaces = (check_target(target) / CARD).is_file()
    with Progress("steps" if id_images else "words") as meter:
        if contexts:
            named = click.get_current_context().get_parameter_source("encoder") is not ParameterSource.DEFAULT
            others = {**options, "id_images": id_images, "set": settings}
            detector = _moved(contexts, names, others, {**runtime, "encoder": encoder if named else None}, meter)
        else:
            detector = fit(
                names,
                encoder=get_encoder(encoder, **runtime),
                id_images=id_images or None,
                miner_params=of_miner,
                report=meter,
                **options,
                **parameters,
            )
    detector.save(target)
    if replaces:
        say(f"{target}: the detector that was there is replaced")
    if detector.card.learned and (learning := detector.scorer.describe_learning(detector.card.learned)):
        say(learning)
    if Need.LABELS in detector.scorer.wants():
        tell(detector, labels)
    for name, used in detector.scorer.in_use().items():
        if used != (set_to := detector.scorer.params()[name]):
            say(f"{name}: {used:.4g} is used in place of {set_to} (docs/short-lists.md)")
    counts = {"labels": len(names), "wild": len(detector.wild), "in_use": detector.scorer.in_use()}
    counts["odds"] = [{"label": one.label, "share": one.share, "word": one.word} for one in detector.odds]
    counts["labels_report"] = detector.labels_report.as_json()
    show(json.dumps({"path": target, **counts, **detector.card.as_json()}) if as_json else target)


def _moved(
    contexts: str, names: Mapping[str, Label], others: dict[str, Any], runtime: Mapping[str, Any], meter: Progress
) -> Detector:
    """A detector for other labels with the learned prompts of one that there is."""
    from outword.detector.loading import load

    if given := [name for name, value in others.items() if value]:
        option = f"--{given[0].replace('_', '-')}"
        raise ParameterError(f"with --contexts all is as in that detector, got {option}", hint=f"leave {option} out")
    keys = ("encoder", "device", "precision", "batch_size")
    source = load(contexts, **{key: value for key, value in runtime.items() if key in keys})
    if not source.scorer.kept_:
        raise ParameterError(f"{contexts} has no learned prompts: it is of {source.method}", hint="see --method coop")
    return source.relabel(names, meter)


def _stem(labels: str) -> str:
    """What a detector is called after: the file or the folder of its labels, else "labels"."""
    if os.path.isdir(labels):  # noqa: PTH112  # what is typed may be too long for a path
        return Path(labels).resolve().name
    return str(Path(labels).with_suffix("")) if os.path.isfile(labels) else "labels"  # noqa: PTH113


def fit_plainly(
    labels: str, names: Mapping[str, Label], options: Mapping[str, Any], *, in_short: bool = False
) -> Detector:
    """A detector of the names in `labels` with all defaults; the options are those of `outword.load`.

    `in_short` says in a line what was done, and which labels are not known as such.
    """
    from outword.detector.cached import fit_cached

    runtime = {key: value for key, value in options.items() if key not in ("encoder", "trust_encoder")}
    with Progress("words") as meter:
        made, was_there = fit_cached(names, options.get("encoder", "mini"), report=meter, **runtime)
    done = "fitted before, and taken from the cache" if was_there else "fitted"
    say(f"{a_few(made.labels, SHOWN)}: {done} ({made.card.encoder.name}, {made.method})")
    if in_short:
        _tell_odds(made, labels, in_short=True)
    else:
        tell(made, labels)
    return made


def find_judge(
    detector: str | None, labels: str | None, label_column: str | None, options: Mapping[str, Any]
) -> tuple[Detector, Mapping[str, Any]]:
    """The detector at a path, or one of labels, and the options of `outword.load` to load it on other nodes."""
    from outword.detector.loading import load
    from outword.words.labels import read_labels

    if detector is not None:
        return load(detector, **options), options
    assert labels is not None
    names = read_labels(labels, column=label_column, say=say)
    return fit_plainly(labels, names, options, in_short=True), without_encoder(options)


def split_detector(verb: str, paths: tuple[str, ...], labels: str | None) -> tuple[str | None, tuple[str, ...]]:
    """The detector, which is the first of some paths unless there are labels instead, and the other paths."""
    from outword.detector.artifact import is_saved

    first = paths[0] if paths and (labels is None or is_saved(paths[0])) else None
    check_either(verb, first, labels, " photos/")
    if first is None:
        return None, paths
    check_detector(verb, paths)
    return first, paths[1:]


def check_either(
    verb: str, detector: str | None, labels: str | None, after: str = "", *, detector_as: str = "a DETECTOR"
) -> None:
    """Raise unless there is a detector or labels, and not both; `after` is the rest of a command that is right."""
    if (detector is None) == (labels is None):
        got = "neither" if labels is None else f"both: {detector}"
        hint = f"for example: outword {verb} --labels {EXAMPLE}{after}"
        raise InputError(f"{verb} takes {detector_as} or --labels, got {got}", hint=hint)


def check_detector(verb: str, paths: Sequence[str]) -> None:
    """Raise if the first of what a verb was given is no detector, as where `--labels` was forgotten.

    It may be the labels themselves, a file of them, a photo, or a folder of photos.
    """
    from outword.detector.artifact import is_saved
    from outword.photos.formats import SUFFIXES
    from outword.photos.sources import ARCHIVES

    first, *rest = paths
    if is_saved(first) or first.lower().endswith(".zip"):  # what is wrong with one is said when it is read
        return
    if saved := next((one for one in rest if is_saved(one)), None):
        others = [one for one in paths if one != saved]
        hint = f"outword {verb} {shlex.quote(saved)} {_quoted(others)}"
        raise InputError(f"the detector comes first, got {first} before {saved}", hint=hint)
    there = os.path.exists(first)  # noqa: PTH110  # what is typed may be too long for a path
    photos_end = *SUFFIXES, *ARCHIVES
    are_labels = os.path.isfile(first) and not first.lower().endswith(photos_end) if there else "," in first  # noqa: PTH113
    labels, photos = (shlex.quote(first), rest) if are_labels else (EXAMPLE, paths if there else ["photos/"])
    shown = "" if verb == "serve" else f" {_quoted(photos or ['photos/'])}"
    hint = f"outword {verb} --labels {labels}{shown}"
    hint = hint if there or are_labels else f'make one with "outword fit", or name the classes: {hint}'
    raise InputError(f"{first} is not a saved detector, and {verb} takes a DETECTOR or --labels", hint=hint)


def _quoted(paths: Sequence[str]) -> str:
    return " ".join(map(shlex.quote, paths[:2])) + " ..." * (len(paths) > 2)


def tell(detector: Detector, labels: str) -> None:
    """Say what a new detector makes of its labels, how well the encoder knows them, and what to expect of it."""
    from outword.maths.methods import Need

    by_photos = Need.ID_LABELS in detector.scorer.wants()  # then no sense of a name matters
    for meaning in () if by_photos else detector.card.meanings[:NAMED]:
        for line in _about_name(meaning, detector):
            say(line)
    if len(detector.card.meanings) > NAMED and not by_photos:
        say(f"and {len(detector.card.meanings) - NAMED:,} more labels (--json tells all)")
    _tell_odds(detector, labels)
    if detector.cut:
        say(_expected(detector))
    elif detector.threshold is None:
        say(f"{detector.method} has no threshold yet: outword calibrate DETECTOR PHOTOS, with photos of your classes")
    else:
        name = detector.card.encoder.name
        say(
            f"no reference for {name}: the threshold is a formula's, and 100 photos or more that are scored give a "
            f'better one ("outword reference PHOTOS --encoder {name}" makes a reference)'
        )


def _about_name(meaning: Meaning, detector: Detector) -> list[str]:
    """Lines about what one label is taken for, where there is something to say."""
    from outword.words.kinds import in_plain_words, is_clear

    lines = _about_words(meaning, detector)
    if meaning.gloss and not is_clear(meaning):
        gloss = shorten(in_plain_words(meaning.gloss), 70, placeholder=" ...")
        lines.append(f"{meaning.label}: {gloss} (1 of {meaning.n_senses} senses)")
    if meaning.read:
        lines.append(f'{meaning.label}: {detector.card.encoder.name} reads "{meaning.read}", which has that sense')
    if meaning.kinds and means_persons(meaning):
        lines.append(f"{meaning.label}: seen by what people wear, too, {len(meaning.kinds):,} names")
    elif meaning.kinds:
        shown = ", ".join(meaning.kinds[:3]) + (", ..." if len(meaning.kinds) > 3 else "")
        lines.append(f"{meaning.label}: {len(meaning.kinds):,} kind{'s' * (len(meaning.kinds) > 1)} ({shown})")
    return lines


def _about_words(meaning: Meaning, detector: Detector) -> list[str]:
    """Lines about a label that WordNet does not know, or not as a whole."""
    from outword.words.kinds import last_words
    from outword.words.labels import is_in_latin

    name, encoder, flag = meaning.label, detector.card.encoder.name, detector.coverage.get(meaning.label)
    noun = meaning.head or last_words(meaning.names[0])
    if meaning.suggestions:
        return [f"{name}: WordNet does not know it; did you mean {' or '.join(meaning.suggestions)}?"]
    if flag is not None and meaning.head and meaning.sense:
        return [f"{name}: stands for {noun}; {encoder} knows the noun alone, so {noun} of any look will do"]
    if flag is not None and not meaning.sense and not noun:
        return [f"{name}: no English name that WordNet knows; {encoder} knows English names only"]
    if flag is None and not is_in_latin(name):
        return [
            f"{name}: {encoder} reads the languages that its text tower was trained on; OpenAI's CLIP knows English"
        ]
    return []


def _expected(detector: Detector) -> str:
    """What the threshold is expected to do, as far as that is known."""
    from outword.maths.reference import share_let_in

    cut, known, odds = detector.cut, detector.thresholds.counted_scores, detector.odds
    assert cut is not None and known is not None
    out = 100 * (1 - share_let_in(known, cut.value))
    others = f"{out:.0f} % of unrelated photos out"
    if detector.thresholds.alike_scores is not None:  # each of them may be unrelated, or may not
        others = f"at least {math.floor(out)} % of unrelated photos out"
    if odds:
        inside = 100 * sum(one.share for one in odds) / len(odds)
        yours = f"about {inside:.0f} % of your photos in"
    elif cut.tpr is not None:
        yours = f"about {100 * cut.tpr:.0f} % of your photos in, if the encoder knows your labels"
    else:
        return f"expected: {others}; how many of yours are in is not known ({detector.how_cut})"
    page = "; docs/clip.md shows how far that holds" if detector.basis == "imagined" else ""
    return f"expected: {yours}, {others} ({detector.how_cut}{page})"


def _tell_odds(detector: Detector, labels: str, *, in_short: bool = False) -> None:
    """Say what to expect of each label and why, in short of the weak ones alone; what is weak is a warning."""
    report = detector.labels_report
    if any(one.odds for one in report):
        fine = [one for one in report if not one.is_weak]
        for one in fine[:NAMED] if not in_short else ():
            say(one.told)
        if len(fine) > NAMED and not in_short:
            say(f"and {len(fine) - NAMED:,} more labels, fair or good")
        _warn_of_weak(report.weak, in_short=in_short)
    else:
        _tell_coverage(report, in_short=in_short)
    _hint_at_commas(detector, labels)
    _suggest_clip(detector, report, labels)


def _warn_of_weak(weak: LabelsReport, *, in_short: bool) -> None:
    """A warning for each label of which most photos may be kept out, and what to do about it.

    What a name may be a slip for is said before, but in short.
    """
    from outword.detector.labels_report import ELSE

    for one in weak[:NAMED]:
        warn(f"WARNING: {one.told}")
        if in_short or not one.is_slip:
            warn(f"  {one.try_names}")
    if len(weak) > NAMED:
        warn(f"WARNING: and {len(weak) - NAMED:,} more labels that are poor or not seen")
    if weak:
        warn(f"or {ELSE}")


def _tell_coverage(report: LabelsReport, *, in_short: bool) -> None:
    """Say how well the encoder knows labels whose odds are not known."""
    for flag in dict.fromkeys(sorted(one.flag for one in report if one.flag)):
        named = [one.label for one in report if one.flag == flag]
        if not in_short or familiarity(Flag(flag)) != "known":
            say(f"{flag}: {a_few(named, SHOWN)}")


def _hint_at_commas(detector: Detector, labels: str) -> None:
    """Say it where a typed label seems to be several: "cat dog", whose words are known by themselves."""
    from outword.vectors.names import coverage

    if labels == STDIN or os.path.exists(labels):  # noqa: PTH110  # what is typed may be too long for a path
        return
    for label in [label for label, flag in detector.coverage.items() if familiarity(flag) == "head noun only"][:SHOWN]:
        words = label.split()
        if len(words) > 1 and all(one.familiarity == "known" for one in coverage(detector.encoder, words)):
            say(f'hint: commas separate labels: "{", ".join(words)}"')
            return


def _suggest_clip(detector: Detector, report: LabelsReport, labels: str) -> None:
    """Say loudly how to use an encoder that knows more, where this one does not know labels."""
    from outword.encoders.names import BEST
    from outword.encoders.present import best

    strange = [one for one in report if one.is_weak or familiarity(Flag(one.flag or "known")) == "unknown"]
    if not strange or not detector.coverage:
        return
    if only := detector.encoder.knows:
        which = a_few([one.label for one in strange], SHOWN)
        say(f"WARNING: {detector.encoder.name} knows {only} and nothing else, not {which}", "red", bold=True)
        return
    counts = f"{len(strange)} of {counted(len(report), 'label')}"
    better = best()
    named, known = ("clip-vit-b-16", "CLIP") if better == "mini" else (BEST, better)
    say(f"{counts} may not be seen by the small encoder that comes with outword. {known} sees more:", "red", bold=True)
    say(f"  {_with_another(detector, labels, named)}", "red", bold=True)
    fetched = f"fetched once; on torch after {install('clip')}; docs/encoders.md"
    say(f"  ({fetched})" if better == "mini" else f"  (it is on this machine: {better})", "red")


def _with_another(detector: Detector, labels: str, encoder: str) -> str:
    """The command that runs, with another encoder; labels of standard input are gone, so that they are typed."""
    verb = click.get_current_context().info_name
    if labels == STDIN:
        typed = [meaning.text for meaning in detector.card.meanings]
        labels = ", ".join(typed) if len(typed) <= SHOWN else "labels.txt"
    given = f"{'' if verb == 'fit' else '--labels '}{shlex.quote(labels)}"
    return f"outword {verb} {given} --encoder {encoder}{'' if verb in ('fit', 'serve') else ' ...'}"
