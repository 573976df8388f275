"""Draws a captured pane as PNG: self-contained HTML, rendered by Chromium."""

import base64
import html
import re

from shared.waiting import Failure

#: ANSI colour -> its colour on a dark background.
COLOURS = {1: "#ff7b72", 2: "#56d364", 3: "#e3b341"}
PAGE = """<!DOCTYPE html><meta charset="utf-8"><title>terminal</title><style>
html {{ background: #0d1117; }}
body {{ margin: 0; display: inline-block; }}
pre {{ margin: 0; padding: 12px 14px; width: {columns}ch; color: #d7dce2;
  font: 14px/1.3 "DejaVu Sans Mono", "Liberation Mono", monospace; }}
b {{ color: #fff; }}
</style><pre id="screen">{text}</pre>"""
SEQUENCE = re.compile(r"\x1b\[([0-9;]*)m")


def write(browser, path, shown, columns):
    """Saves a captured pane as PNG, without trailing empty lines."""
    document = PAGE.format(columns=columns, text=_marked_up(shown.rstrip()))
    page = browser.open("data:text/html;base64," + base64.b64encode(document.encode()).decode())
    page.wait_for("the page is there", "document.getElementById('screen') !== null && document.readyState === 'complete'")
    page.size(1600, 1200)
    width, height = page.evaluate(
        "(() => { const r = document.body.getBoundingClientRect(); return [Math.ceil(r.width), Math.ceil(r.height)]; })()")
    page.size(width, height)
    page.picture(path, height)
    page.close()


def _marked_up(shown):
    """HTML for text with the sequences that the command uses: bold, and three colours."""
    pieces, is_bold, colour, end = [], False, None, 0
    for sequence in SEQUENCE.finditer(shown):
        pieces.append(_piece(shown[end:sequence.start()], is_bold, colour))
        end = sequence.end()
        for number in map(int, (sequence[1] or "0").split(";")):
            if number == 0:
                is_bold, colour = False, None
            elif number == 1:
                is_bold = True
            elif number == 49:
                continue  # the default background
            elif number == 39:
                colour = None
            elif number - 30 in COLOURS:
                colour = COLOURS[number - 30]
            else:
                raise Failure(f"a screenshot does not support {sequence[0]!r}")
    pieces.append(_piece(shown[end:], is_bold, colour))
    return "".join(pieces)


def _piece(text, is_bold, colour):
    if "\x1b" in text:
        raise Failure(f"a screenshot does not support {text!r}")
    text = html.escape(text)
    if colour is not None:
        text = f'<span style="color: {colour}">{text}</span>'
    return f"<b>{text}</b>" if is_bold and text else text
