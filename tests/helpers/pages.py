"""A page, parsed: its tags are balanced; and a text that tries everything."""

from html.parser import HTMLParser
from pathlib import Path

import outword

HOSTILE = "<script>alert(\"x\")</script>' onerror='y\n\u202egpj.exe \udce9 & {{ title }} {% raw %}.jpg"
STYLE = (Path(outword.__file__).parent / "scoring" / "style.css").read_text(encoding="utf-8").rstrip()
VOID = {"meta", "img", "input"}


class Page(HTMLParser):
    """Checks that tags are balanced, and collects tags, texts and attributes."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts, self.attributes, self.open = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attributes]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)
