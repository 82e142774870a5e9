"""What labels mean: senses looked up by hand, whose kind is whose, and which words are one."""

import pytest

from outword.errors import InputError, ParameterError
from outword.words.forms import IRREGULAR, drop_labels
from outword.words.kinds import Meaning, are_below, are_named, is_kind, phrase_head, understand
from outword.words.labels import check_labels
from outword.words.nouns import nouns


def meanings(*labels, kinds="all", **options):
    return understand(check_labels(labels), kinds, **options)


# label, the others of the list, and what the gloss of its sense begins with
SENSES = [
    ("crane", "heron, stork", "large long-necked wading bird"),
    ("crane", "bulldozer, excavator", "lifts and moves heavy objects"),
    ("mouse", "keyboard, monitor", "a hand-operated electronic device"),
    ("mouse", "cat, dog", "any of numerous small rodents"),
    ("mouse", "", "any of numerous small rodents"),
    ("monitor", "keyboard, mouse", "display produced by a device"),
    ("bat", "", "nocturnal mouselike mammal"),
    ("bat", "owl, moth", "nocturnal mouselike mammal"),
    ("seal", "walrus, penguin", "any of numerous marine mammals"),
    ("kite", "eagle, hawk, falcon", "any of several small graceful hawks"),
    ("kite", "frisbee, ball", "plaything consisting of a light frame"),
    ("bass", "trout, salmon", "nontechnical name for any of numerous edible"),
    ("bass", "guitar, drum, violin", "the member with the lowest range"),
    ("turkey", "chicken, duck, goose", "large gallinaceous bird"),
    ("turkey", "", "large gallinaceous bird"),
    ("orange", "apple, banana", "round yellow to orange fruit"),
    ("apple", "orange, banana", "fruit with red or yellow or green skin"),
    ("banana", "apple, orange", "elongated crescent-shaped yellow fruit"),
    ("bank", "school, hospital", "a building in which the business of banking"),
    ("cat", "dog", "feline mammal"),
    ("dog", "cat", "a member of the genus Canis"),
    ("chicken", "cow, pig, sheep", "a domestic fowl bred for flesh or eggs"),
    ("chicken", "beef, pork", "the flesh of a chicken"),
    ("pitcher", "cup, glass, plate", "an open vessel"),
    ("boxer", "poodle, beagle", "a breed of stocky medium-sized"),
    ("boxer", "wrestler, judge", "someone who fights with his fists"),
    ("nail", "hammer, screw", "a thin pointed piece of metal"),
    ("iron", "toaster, vacuum, kettle", "home appliance"),
    ("bow", "sword, spear, arrow", "a weapon for shooting arrows"),
    ("palm", "oak, pine", "any plant of the family Palmae"),
    ("plane", "car, ship, train", "an aircraft that has a fixed wing"),
    ("plant", "animal", "(botany) a living organism"),
    ("shoes", "hat, coat", "footwear shaped to fit the foot"),
    ("shoe", "monkey, bear, truck, ship, lamp, bag, bicycle", "footwear shaped to fit the foot"),
    ("glass", "bottle, cup", "a container for holding liquids while drinking"),
    ("table", "dog, car", "a piece of furniture having a smooth flat top"),
    ("tie", "shirt, jacket", "neckwear consisting of a long narrow piece"),
    ("duck", "goose, swan", "small wild or domesticated web-footed"),
    ("tank", "rifle, soldier", "an enclosed armored military vehicle"),
    ("star", "moon, planet", "(astronomy) a celestial body"),
    ("cat", "king", "feline mammal"),
    ("dog", "chair", "a member of the genus Canis"),  # one label alone is little company
    ("horse", "hammer", "solid-hoofed herbivorous quadruped"),
    ("bus", "car", "a vehicle carrying many passengers"),
    ("pants", "", "(usually in the plural) a garment"),
    ("baby", "", "a very young child (birth to 1 year)"),
    ("helmet", "", "a protective headgear"),
    ("plane", "", "an aircraft that has a fixed wing"),
    ("iron", "", "home appliance"),
    ("couch", "", "an upholstered seat"),
    ("toilet", "", "a plumbing fixture"),
    ("glasses", "", "optical instrument consisting of a frame"),
    ("man", "", "an adult person who is male"),
    ("boy", "", "a youthful male person"),
    ("scooter", "", "child's two-wheeled vehicle"),
    ("cardigan", "", "knitted jacket"),
    ("octopus", "", "bottom-living cephalopod"),
]


@pytest.mark.parametrize(("label", "others", "gloss"), SENSES)
def test_a_sense_is_known_by_the_company_that_it_keeps(label, others, gloss):
    company = [other.strip() for other in others.split(",") if other]
    found = meanings(label, *company, kinds="off")[0]
    assert found.gloss.startswith(gloss)
    assert found.n_senses > 1
    assert nouns().gloss(nouns().by_wnid(found.sense)) == found.gloss


def test_a_word_with_one_sense_has_no_gloss_and_one_without_has_suggestions():
    poodle, slip, phrase = meanings("poodle", "daschund", "red car")
    assert (poodle.sense, poodle.n_senses, poodle.gloss) == ("n02113335", 1, "")
    assert slip == Meaning("daschund", "daschund", ("daschund",), "", "", 0, (), False, ("dachshund",))
    assert (phrase.sense, phrase.kinds, phrase.suggestions) == ("", (), ())
    assert not understand(check_labels([*(f"zzz{i}" for i in range(20)), "daschund"]))[-1].suggestions


@pytest.mark.parametrize(
    ("typed", "wnid"),
    [
        ("crane#bird", "n02012849"),
        ("crane#Birds", "n02012849"),
        ("crane#machine", "n03126707"),
        ("crane#tackle", "n03126707"),
        ("crane#poet", "n10914331"),
        ("crane#5", "n02012849"),
        ("crane#n02012849", "n02012849"),
        ("Rex#n02084071", "n02084071"),
    ],
)
def test_a_sense_by_hand(typed, wnid):
    assert meanings(typed, "excavator", kinds="off")[0].sense == wnid


def test_a_hint_that_fits_nothing_tells_the_senses():
    with pytest.raises(InputError, match="no sense of 'crane' fits the hint 'banana'") as error:
        meanings("crane#banana")
    assert "crane#5 (large long-necked wading bird" in error.value.hint
    with pytest.raises(InputError, match="WordNet does not know 'daschund'"):
        meanings("daschund#dog")
    with pytest.raises(InputError, match="fits the hint '9'"):
        meanings("crane#9")


def test_a_label_without_some_of_its_kinds():
    (all_of_it,) = meanings("animal")
    (most,) = meanings("animal > -dog | -bird")
    assert {"dog", "poodle", "bird", "hen", "cat"} <= set(all_of_it.kinds)
    assert {"dog", "poodle", "bird", "hen", "cat"} & set(most.kinds) == {"cat"}
    assert (most.label, most.names, most.without, most.by_hand) == ("animal", ("animal",), ("dog", "bird"), False)
    assert is_kind(["poodle", "tabby", "animal"], [most]) == [False, True, True]  # poodles compete with animals
    assert are_below([most.sense, meanings("poodle")[0].sense], [most]) == [True, False]
    (no_cats,) = meanings("animal > -cat")
    assert not {"cat", "Siamese cat", "domestic cat", "feline"} & set(no_cats.kinds)  # it may be a cat
    assert "dog" in no_cats.kinds
    (no_felines,) = meanings("animal > -feline")
    assert not {"Siamese cat", "domestic cat"} & set(no_felines.kinds)  # domestic animals, too
    assert are_below([meanings("domestic cat")[0].sense], [no_felines]) == [False]
    animal, dog = meanings("animal > -dog", "dog")  # which is a label of its own
    assert "poodle" in dog.kinds and "poodle" not in animal.kinds and is_kind(["poodle"], [animal, dog]) == [True]
    assert meanings("pet > cat | hamster | -hamster")[0].kinds == ("cat",)
    with pytest.raises(InputError, match="'chair' is no kind of 'animal'"):
        meanings("animal > -chair")


def test_several_names_have_a_sense_in_common():
    assert meanings("plane | sheet")[0].sense == "n13861050"  # of geometry
    assert meanings("daschund | dachshund")[0].sense == meanings("dachshund")[0].sense


def test_kinds_are_of_the_nearest_label_and_of_one_only():
    dog, poodle = meanings("dog", "poodle")
    assert set(poodle.kinds) == {"toy poodle", "miniature poodle", "standard poodle", "large poodle"}
    assert {"beagle", "terrier"} <= set(dog.kinds)
    assert not set(dog.kinds) & {"dog", "poodle", *poodle.kinds}
    assert dog.kinds[:3] == ("hound", "puppy", "terrier")
    every = [name for meaning in meanings("dog", "animal", "pet", "vehicle", "car") for name in meaning.kinds]
    assert len(every) == len(set(every))


def test_kinds_known_off_and_bounded():
    known = meanings("dog", kinds="known", known=lambda names: [name in ("beagle", "terrier") for name in names])
    assert known[0].kinds == ("terrier", "beagle")
    assert meanings("dog", kinds="off")[0].kinds == ()
    for kinds, message in (("known", "needs to be told what is known"), ("some", 'must be "all", "known" or "off"')):
        with pytest.raises(ParameterError, match=message):
            meanings("dog", kinds=kinds)
    assert meanings("dog", most=2)[0].kinds == ("hound", "puppy")


def test_kinds_by_hand_stand_and_what_is_below_them_is_nobody_elses():
    pet, animal = meanings("pet > cat | hamster | Rex", "animal", most=10_000)
    assert pet.kinds == ("cat", "hamster", "Rex")
    assert pet.by_hand
    assert "dog" in animal.kinds
    assert not {"cat", "hamster", "Persian cat", "golden hamster"} & set(animal.kinds)
    assert meanings("pet > cat", kinds="off")[0].kinds == ("cat",)


def test_words_that_are_a_kind():
    found = meanings("dog", "furniture > chair", kinds="off")
    words = {"Dogs": True, "beagle": True, "German shepherd": True, "chairs": True, "rocking chair": True}
    others = {"boxer": False, "cat": False, "sofa": False, "canine": False, "toy": False, "zzz": False, "weasel": False}
    assert dict(zip(words | others, is_kind([*words, *others], found), strict=True)) == words | others
    assert is_kind(["toy dog", "toy", "boxer"], meanings("dog")) == [True, False, True]


def test_senses_that_are_a_kind():
    wnids = ["n02084071", "n02113335", "n02121620", "n00000000"]  # dog, poodle, cat, nothing
    assert are_below(wnids, meanings("dog", kinds="off")) == [True, True, False, False]
    assert are_below(wnids, meanings("daschund")) == [False] * 4


def test_a_plural_begins_as_its_singular_does():
    """`are_named` passes over most words by their first letter."""
    assert all(plural[0] == singular[0] for plural, singular in IRREGULAR.items())


def test_words_of_other_first_letters_are_not_lost():
    labels = ["mouse", "jail", "the Geese", "color", "élan", "3-D film"]
    words = ["mice", "gaols", "a jail", "An goose", "COLOURS", "elan", "Élan", "_mouse", "3d films", "cat", "-goose"]
    kept, dropped = drop_labels(words, labels)
    assert are_named(words, labels) == [word in dropped for word in words] and [words[i] for i in kept] == ["cat"]


@pytest.mark.parametrize(
    ("typed", "head"),
    [
        ("black cat", "cat"),  # a fisher, says WordNet
        ("big old chairs", "chairs"),
        ("hot dog", ""),
        ("brown bear", ""),
        ("white wine", ""),
        ("dog food", ""),  # is no dog, and no adjective says what food
        ("black", ""),
    ],
)
def test_a_phrase_with_adjectives_stands_on_its_noun(typed, head):
    assert phrase_head(typed) == head


def test_a_phrase_has_the_kinds_of_its_noun_where_the_encoder_sees_no_more():
    cat, dog = understand(check_labels(["black cat", "brown dog"]), "all", by_noun=True)
    assert (cat.names, cat.head, cat.read, cat.sense) == (("black cat",), "cat", "cat", meanings("cat")[0].sense)
    assert set(cat.kinds) == set(meanings("cat")[0].kinds) and "beagle" in dog.kinds
    assert (dog.read, dog.sense) == ("", meanings("dog")[0].sense)  # WordNet does not know a brown dog as anything
    plain, of_look = understand(check_labels(["cat", "black cat"]), "all", by_noun=True)
    assert "tabby" in plain.kinds and not of_look.kinds
    assert not any(one.kinds for one in understand(check_labels(["red car", "blue car"]), "all", by_noun=True))
    (seen,) = understand(check_labels(["black cat"]), "all")
    assert (seen.sense, seen.kinds, seen.read, seen.head) == ("", (), "", "cat")


@pytest.mark.parametrize(
    ("typed", "others", "read"),
    [
        ("mouse#device", "", "computer mouse"),
        ("mouse", "keyboard, monitor", "computer mouse"),
        ("mouse", "cat, dog", ""),
        ("kiwi", "", "kiwi fruit"),
        ("kiwi#bird", "", ""),  # as usual as the other, and no other name has it
        ("bow#decoration", "", "bow decoration"),
        ("glasses", "", ""),
        ("dog", "", ""),
        ("crane", "", ""),
    ],
)
def test_a_sense_is_read_under_a_name_that_means_it(typed, others, read):
    company = [other.strip() for other in others.split(",") if other]
    assert meanings(typed, *company, kinds="off")[0].read == read


def test_kinds_are_what_their_names_mostly_mean():
    (person,) = meanings("person", most=10_000)
    assert not {"pillar", "jumper", "killer", "cookie"} & set(person.kinds)
    assert {"child", "nurse"} & set(person.kinds)


def test_names_are_spelled_in_their_sense():
    assert [meaning.names for meaning in meanings("shoes", "glasses", "Trees", "kiwi", kinds="off")] == [
        ("shoe",),
        ("glasses",),
        ("tree",),
        ("kiwi",),
    ]
    jacket, corgi = meanings("cardigan", "Cardigan", kinds="off")
    assert (jacket.names, corgi.names) == (("cardigan",), ("Cardigan",)) and jacket.sense != corgi.sense
    with pytest.raises(InputError, match="labels must differ"):
        meanings("cat", "Cat")
