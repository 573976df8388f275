"""Checks docker/observability/dashboard.json with Grafana's own data model for Python (grafana-foundation-sdk, for Grafana 11.6).

The model ignores unknown fields, so a field with a wrong name is missing when the model writes the dashboard again: everything that
was read has to be written unchanged. Anything that the model adds has to be a default that the file omits. Values need the model's
types, and words have to belong to its enumerations. Without the SDK (it needs Python 3.11) the check is skipped, visibly.
"""

import enum
import json
import types
import typing

from shared import grafana_dashboard
from shared.waiting import Failure, Skip

try:
    from grafana_foundation_sdk.cog import runtime
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.cog.plugins import register_default_plugins
    from grafana_foundation_sdk.models import dashboard as model
    from grafana_foundation_sdk.models import prometheus
except ImportError:
    model = None

#: Fields that Grafana writes, but its model lacks.
UNKNOWN_TO_THE_MODEL = {
    # The query as text, which Grafana writes for variables beside `query`.
    "templating.list.definition",
}


def check(_folder):
    """Returns a line about the dashboard; raises Failure with the mistakes found in it."""
    if model is None:
        raise Skip("no grafana-foundation-sdk here: scripts/test-requirements.txt, Python 3.11")
    register_default_plugins()
    text = grafana_dashboard.read()
    dashboard = model.Dashboard.from_json(text)
    written = json.loads(JSONEncoder().encode(dashboard))
    findings = list(losses(text, written, "")) + list(mistakes(dashboard, "dashboard"))
    if not findings:
        findings = list(duplicates_and_overlaps(text)) + list(foreign_panels_and_sources(dashboard))
    if findings:
        raise Failure("\n".join([f"{len(findings)} mistakes in dashboard.json", *findings]))
    return f"dashboard.json has {len(list(grafana_dashboard.panels(text)))} panels and {fields(text)} values"


def losses(read, written, path):
    """Values that were read, but that the model does not write unchanged."""
    if isinstance(read, dict) and isinstance(written, dict):
        for key, value in read.items():
            inner = f"{path}.{key}" if path else key
            if key in written:
                yield from losses(value, written[key], inner)
            elif without_numbers(inner) not in UNKNOWN_TO_THE_MODEL:
                yield f"{inner} is not a field of Grafana's model: {value!r}"
    elif isinstance(read, list) and isinstance(written, list) and len(read) == len(written):
        for number, (old, new) in enumerate(zip(read, written)):
            yield from losses(old, new, f"{path}[{number}]")
    elif read != written or type(read) is not type(written):
        yield f"{path} is {read!r}, and {written!r} in Grafana's model"


def without_numbers(path):
    return "".join(part.partition("]")[2] if "]" in part else part for part in path.split("["))


def mistakes(value, path):
    """Attributes whose values do not have the model's types."""
    for name, hint in hints(type(value)).items():
        inner, at = getattr(value, name, None), f"{path}.{name}"
        if not fits(inner, hint):
            yield f"{at} is {inner!r}, not {hint}"
        for number, part in enumerate(inner if isinstance(inner, list) else [inner]):
            yield from mistakes(part, f"{at}[{number}]" if isinstance(inner, list) else at)
        if isinstance(inner, dict):
            for key, part in inner.items():
                yield from mistakes(part, f"{at}.{key}")


def hints(kind):
    if not kind.__module__.startswith("grafana_foundation_sdk.models") or issubclass(kind, enum.Enum):
        return {}
    return typing.get_type_hints(kind)


def fits(value, hint):
    """Whether a value has a type, as far as the model declares it."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is typing.Any or hint is object:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, each) for each in inner)
    if origin is typing.Literal:
        return value in inner
    if origin is list:
        return isinstance(value, list) and all(fits(each, inner[0]) for each in value)
    if origin is dict:
        return isinstance(value, dict) and all(fits(each, inner[1]) for each in value.values())
    if not isinstance(hint, type):
        return True
    if issubclass(hint, enum.Enum):
        return value in [each.value for each in hint]
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)


def duplicates_and_overlaps(text):
    """Panels with the same ID, panels that overlap, and queries of a panel with the same letter."""
    seen, taken = set(), {}
    for panel in grafana_dashboard.panels(text):
        if panel["id"] in seen:
            yield f"two panels have the ID {panel['id']}"
        seen.add(panel["id"])
        place = panel["gridPos"]
        if place["x"] + place["w"] > 24:
            yield f"{panel['title']} is wider than the page"
        for cell in ((x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])):
            if cell in taken:
                yield f"{panel['title']} overlaps {taken[cell]}"
                break
            taken[cell] = panel["title"]
        letters = [target["refId"] for target in panel.get("targets", ())]
        if len(letters) != len(set(letters)):
            yield f"{panel['title']} has two queries with the same letter"


def foreign_panels_and_sources(dashboard):
    """Panels of types that Grafana does not include; panels and queries with a data source other than the selected Prometheus."""
    for panel in dashboard.panels:
        if isinstance(panel, model.RowPanel):
            continue
        if runtime.panelcfg_config(panel.type_val) is None:
            yield f"{panel.title} is a {panel.type_val}, which Grafana does not include"
        for asking in (panel, *panel.targets):
            source = asking.datasource
            if source is None or (source.type_val, source.uid) != ("prometheus", "${datasource}"):
                yield f"{panel.title} has the data source {source and (source.type_val, source.uid)}"
        for target in panel.targets:
            if not isinstance(target, prometheus.Dataquery):
                yield f"{panel.title} has a query of another type than Prometheus's"


def fields(value):
    if isinstance(value, dict):
        return sum(fields(each) for each in value.values())
    if isinstance(value, list):
        return sum(fields(each) for each in value)
    return 1
