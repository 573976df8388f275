"""Reads docker/observability/dashboard.json as Grafana does: its variables, and the queries of its panels."""

import dataclasses
import json
import re

from shared.repository import ROOT
from shared.waiting import Failure, expect, expect_equal

FILE = ROOT / "docker" / "observability" / "dashboard.json"


@dataclasses.dataclass(frozen=True)
class Query:
    #: The panel's title, and the query's letter.
    where: str
    expression: str
    #: The labels that the legend names.
    labels: frozenset


def read():
    return json.loads(FILE.read_text())


def variables(dashboard, prometheus):
    """The values of query variables, requested as Grafana does."""
    found = {}
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            query = variable["query"]["query"]
            match = re.fullmatch(r"label_values\(([^,]+), *(\w+)\)", query)
            expect(match, f"{variable['name']}: {query}")
            expect_equal(variable["definition"], query, f"definition and query of {variable['name']}")
            found[variable["name"]] = prometheus.query(f"label/{match[2]}/values", **{"match[]": match[1]})
    return found


def queries(dashboard, values, scrape_seconds):
    """The queries of all panels, with the variables at *All*."""
    # $__rate_interval is the larger of four times the scrape interval, and the step plus the scrape interval.
    filled = {name: regular_expression(found) for name, found in values.items()}
    filled["__rate_interval"] = f"{4 * scrape_seconds}s"
    found = []
    for panel in panels(dashboard):
        if panel["type"] == "row":
            continue
        expect(panel["targets"], f"{panel['title']} has no query")
        for target in panel["targets"]:
            where = f"{panel['title']} {target['refId']}"
            labels = re.findall(r"\{\{ *(\w+) *\}\}", target["legendFormat"])
            found.append(Query(where, fill(target["expr"], filled, where), frozenset(labels)))
    return found


def panels(dashboard):
    """All panels, including those of collapsed rows."""
    for panel in dashboard["panels"]:
        yield panel
        yield from panel.get("panels", ())


def regular_expression(values):
    """A regular expression for several values of a variable, for a quoted string in PromQL."""
    return "(" + "|".join(re.sub(r"[\\^$*+?.()|[\]{}]", r"\\\\\g<0>", value) for value in values) + ")"


def fill(text, values, where):
    def value(match):
        name = match[1] or match[2]
        if name not in values:
            raise Failure(f"{where}: there is no variable {name}")
        return values[name]

    return re.sub(r"\$(?:\{(\w+)\}|(\w+))", value, text)
