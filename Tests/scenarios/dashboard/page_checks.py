"""Checks of a page in any state: contrast, width, target sizes, keyboard access, console and requests."""

from shared.waiting import expect, expect_equal

#: The lowest contrast of text that is not large: https://www.w3.org/TR/WCAG22/#contrast-minimum
MIN_CONTRAST = 4.5
#: The lowest contrast of the edges of controls and of the focus ring: https://www.w3.org/TR/WCAG22/#non-text-contrast
MIN_EDGE_CONTRAST = 3
#: The smallest size of controls: https://www.w3.org/TR/WCAG22/#target-size-minimum
MIN_TARGET_PIXELS = 24

# The contrast of text and background. Behind a transparent background is that of an ancestor.
_COLOURS = """
const numbers = text => text.match(/[\\d.]+/g).map(Number);
const light = text => {
  const [r, g, b] = numbers(text).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((m, n) => n - m); return (x + 0.05) / (y + 0.05); };
const behind = e => {
  for (; e; e = e.parentElement) {
    const colour = getComputedStyle(e).backgroundColor;
    if (numbers(colour)[3] !== 0) return colour;
  }
  return 'rgb(255, 255, 255)';
};
const name = e => (e.id ? '#' + e.id : e.tagName.toLowerCase() + (e.className ? '.' + e.className : ''))
  + ' ' + JSON.stringify((e.textContent || '').trim().slice(0, 30));
const seen = e => e.checkVisibility({ visibilityProperty: true });
"""

_FAINT = """(() => {%s
const found = [];
for (const e of document.body.querySelectorAll('*')) {
  if (!seen(e) || ['SCRIPT', 'STYLE'].includes(e.tagName)) continue;
  const own = [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
  if (own && !e.disabled && ratio(getComputedStyle(e).color, behind(e)) < %s) found.push(name(e));
  if (['BUTTON', 'INPUT'].includes(e.tagName) && ratio(getComputedStyle(e).borderTopColor, behind(e.parentElement)) < %s)
    found.push('the edge of ' + name(e));
}
return found;
})()""" % (_COLOURS, MIN_CONTRAST, MIN_EDGE_CONTRAST)

# A page wider than the screen, and regions that scroll sideways.
_WIDE = """(() => {%s
const wide = [...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth).map(name);
if (document.documentElement.scrollWidth > innerWidth) {
  wide.push('the page: ' + document.documentElement.scrollWidth + ' pixels of ' + innerWidth);
}
return wide;
})()""" % _COLOURS

_SMALL = """(() => {%s
return [...document.querySelectorAll('button, input')].filter(seen).filter(e => {
  const box = e.getBoundingClientRect();
  return Math.min(box.width, box.height) < %s;
}).map(name);
})()""" % (_COLOURS, MIN_TARGET_PIXELS)

_CONTROLS = """(() => {%s
return [...document.querySelectorAll('a[href], button, input, [tabindex="0"]')].filter(e => seen(e) && !e.disabled).map(name);
})()""" % _COLOURS

_FOCUS = """(() => {%s
const e = document.activeElement;
if (!e || e === document.body || e === document.documentElement) return null;
const style = getComputedStyle(e), box = e.getBoundingClientRect();
return {
  name: name(e),
  ring: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2
    && ratio(style.outlineColor, behind(e.parentElement)) >= %s,
  inside: box.right > 0 && box.bottom > 0 && box.left < innerWidth && box.top < innerHeight,
};
})()""" % (_COLOURS, MIN_EDGE_CONTRAST)


def expect_readable(page, label):
    expect_equal(page.evaluate(_FAINT), [], f"{label}: contrast")
    expect_equal(page.evaluate(_WIDE), [], f"{label}: wider than the screen")
    expect_equal(page.evaluate(_SMALL), [], f"{label}: controls too small for touch")


def expect_quiet(page, url, complaints=()):
    """Expects no errors or warnings in the console except `complaints`, and requests to the agent only."""
    unexpected = [text for text in page.complaints if not any(known in text for known in complaints)]
    expect_equal(unexpected, [], "errors and warnings in the console")
    others = [asked for _, asked in page.requests if not asked.startswith(url)]
    expect_equal(others, [], "requests to servers other than the agent")


def expect_keyboard(page):
    """Expects that the Tab key reaches every control, and that each then is visible and has a focus ring."""
    page.evaluate("document.activeElement?.blur(); scrollTo(0, 0)")
    missing = page.evaluate(_CONTROLS)
    expect(missing, "the page has no controls")
    for _ in range(2 * len(missing) + 2):
        page.press("Tab")
        focus = page.evaluate(_FOCUS)
        if focus is None:
            continue
        expect(focus["ring"], f"{focus['name']} has the focus, but no visible ring")
        expect(focus["inside"], f"{focus['name']} has the focus, but is outside the window")
        if focus["name"] in missing:
            missing.remove(focus["name"])
    expect_equal(missing, [], "controls that the Tab key doesn't reach")


def tab_to(page, selector):
    """Presses Tab until an element that matches has the focus."""
    for _ in range(200):
        if page.evaluate(f"document.activeElement?.matches('{selector}')"):
            return
        page.press("Tab")
    expect(False, f"the Tab key doesn't reach {selector}")
