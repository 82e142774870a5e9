"""The names that outword knows of the lab, where it is not installed, are exactly those that the lab registers."""

import json
import subprocess
import sys

from outword.base import lab
from outword.detectors import DETECTORS

ASK = """
import json
from outword.base.registry import FUNCTIONS, LISTS, VERBS
from outword.encoders import ENCODERS
from outword.maths.methods import DETECTORS
from outword.maths.mining import MINERS
from outword.photos.sources.base import SOURCES
from outword.words.corpora import CORPORA

found = {}
registries = (DETECTORS, ENCODERS, CORPORA, MINERS, FUNCTIONS, LISTS, VERBS)
own = {registry.group: {*registry._things} for registry in registries}  # before one brings modules of another
for registry in registries:
    found[registry.group] = [name for name in registry if name not in own[registry.group]]
found[SOURCES.group] = [kind.prefix for kind in SOURCES.values()]
print(json.dumps({group: names for group, names in found.items() if names}))
"""


def test_the_table_is_what_the_lab_registers():
    run = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=True)
    assert json.loads(run.stdout) == {group: [*names] for group, names in lab.NAMES.items()}


def test_classes_are_those_of_its_methods():
    assert {name: DETECTORS[method].__name__ for name, method in lab.CLASSES.items()} == {n: n for n in lab.CLASSES}
    assert sorted(lab.CLASSES.values()) == sorted(lab.NAMES[DETECTORS.group])
