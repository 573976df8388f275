"""What is expected of a page in whatever state: readable, within the screen, by keyboard alone, and at peace with the console."""

from shared.waiting import expect, expect_equal

#: Of text that is not large: https://www.w3.org/TR/WCAG22/#contrast-minimum
LEAST_CONTRAST = 4.5
#: Of what shows where a control is, and which has the focus: https://www.w3.org/TR/WCAG22/#non-text-contrast
LEAST_EDGE_CONTRAST = 3
#: What a finger hits: https://www.w3.org/TR/WCAG22/#target-size-minimum
LEAST_TARGET_PIXELS = 24

# What text and its background come to; transparent backgrounds are those of an ancestor.
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
})()""" % (_COLOURS, LEAST_CONTRAST, LEAST_EDGE_CONTRAST)

# What sticks out of the screen, and regions that have to be scrolled sideways.
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
})()""" % (_COLOURS, LEAST_TARGET_PIXELS)

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
})()""" % (_COLOURS, LEAST_EDGE_CONTRAST)


def expect_readable(page, what):
    expect_equal(page.evaluate(_FAINT), [], f"{what}: contrast")
    expect_equal(page.evaluate(_WIDE), [], f"{what}: wider than the screen")
    expect_equal(page.evaluate(_SMALL), [], f"{what}: too small for a finger")


def expect_quiet(page, url, complaints=()):
    """Nothing in the console but what is named, and nothing asked of anybody but the agent."""
    unexpected = [text for text in page.complaints if not any(known in text for known in complaints)]
    expect_equal(unexpected, [], "errors and warnings in the console")
    others = [asked for _, asked in page.requests if not asked.startswith(url)]
    expect_equal(others, [], "requests to others than the agent")


def expect_keyboard(page):
    """The Tab key comes by every control, each seen and with a ring around it."""
    page.evaluate("document.activeElement?.blur(); scrollTo(0, 0)")
    missing = page.evaluate(_CONTROLS)
    expect(missing, "the page has no controls")
    for _ in range(2 * len(missing) + 2):
        page.press("Tab")
        focus = page.evaluate(_FOCUS)
        if focus is None:
            continue
        expect(focus["ring"], f"{focus['name']} has the focus, which can't be seen")
        expect(focus["inside"], f"{focus['name']} has the focus, and is outside of the window")
        if focus["name"] in missing:
            missing.remove(focus["name"])
    expect_equal(missing, [], "the Tab key never comes to these")


def tab_to(page, selector):
    """Presses Tab until an element that fits has the focus."""
    for _ in range(200):
        if page.evaluate(f"document.activeElement?.matches('{selector}')"):
            return
        page.press("Tab")
    expect(False, f"the Tab key never comes to {selector}")
