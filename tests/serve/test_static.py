"""What the scripts of the page have as a copy: it says what the Python has."""

import re

from outword.photos.formats import SUFFIXES
from outword.serve.app import STATIC


def test_the_page_takes_from_folders_what_a_verb_takes():
    listed = re.search(r"SUFFIXES = \[(.*?)\]", STATIC["photos.js"].read_text(encoding="utf-8"), re.DOTALL)
    assert re.findall('"(.*?)"', listed[1]) == sorted(SUFFIXES)
