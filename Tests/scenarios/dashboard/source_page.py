"""Assembles the dashboard's page from the sources, to test a change without a build."""

import base64
import hashlib
import re

from shared.repository import ROOT

FOLDER = ROOT / "Sources" / "MartletHTTP" / "Dashboard"


def document():
    """The headers and the body with which a built agent would respond to `/`."""
    style, script = _literal("DashboardStyle"), _literal("DashboardScript")
    html = _literal("DashboardPage")
    html = html.replace(r"\(DashboardStyle.text)", style).replace(r"\(DashboardScript.text)", script)
    source = (FOLDER / "DashboardPage.swift").read_text()
    policy = "".join(re.findall(r'"((?:[^"\\]|\\\()*)"', source.partition("let policy =")[2].partition("private")[0]))
    policy = policy.replace(r"\(digest(DashboardScript.text))", _digest(script))
    policy = policy.replace(r"\(digest(DashboardStyle.text))", _digest(style))
    return {"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": policy}, html.encode()


def _literal(name):
    """The multi-line string literal in a file, as the compiler reads it, except for interpolations."""
    found = re.search(r'= #?"""\n(.*?)\n( *)"""#?$', (FOLDER / f"{name}.swift").read_text(), re.DOTALL | re.MULTILINE)
    return re.sub(rf"^{found[2]}", "", found[1], flags=re.MULTILINE)


def _digest(text):
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
