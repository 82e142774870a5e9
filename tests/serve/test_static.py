"""What the scripts of the page repeat of the package is the same there."""

import re
from pathlib import Path

import outword
from outword.base import cells
from outword.photos.formats import SUFFIXES


def script(name):
    return (Path(outword.__file__).parent / "serve" / "static" / name).read_text(encoding="utf-8")


def test_the_table_of_the_browser_is_free_of_formulas_as_ours_is():
    assert f'text.replace(/{cells._BEFORE_FORMULA.pattern}/g, "\'")' in script("exports.js")


def test_the_page_takes_from_a_folder_what_the_verbs_take():
    listed = re.search(r"SUFFIXES = \[(.*?)\]", script("photos.js"), re.DOTALL)
    assert re.findall('"(.*?)"', listed[1]) == sorted(SUFFIXES)
