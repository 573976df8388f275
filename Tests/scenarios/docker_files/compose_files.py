"""Checks that docker/compose.observability.yaml is consistent: services, mounted files, ports, addresses, the token.

It starts no container, and does not check the images.
"""

import json
import re

from shared.repository import ROOT
from shared.waiting import Skip, expect, expect_equal

try:
    import yaml
except ImportError:
    yaml = None

DOCKER = ROOT / "docker"
OBSERVABILITY = DOCKER / "observability"
FILES = ("compose.yaml", "compose.observability.yaml")


def read(path):
    return yaml.safe_load((DOCKER / path).read_text())


def merged_services():
    """The services of both files; settings of the second override those of the first."""
    services = {}
    for name in FILES:
        for service, settings in read(name)["services"].items():
            known = services.setdefault(service, {})
            environment = {**known.get("environment", {}), **settings.get("environment", {})}
            known.update(settings)
            known["environment"] = environment
    return services


def mounts(service):
    """Path in the service's container -> file of this repository."""
    found = {}
    for mount in service.get("volumes", ()):
        source, target, *options = mount.split(":")
        if source.startswith("."):
            expect((DOCKER / source).is_file(), f"there is no docker/{source}")
            expect_equal(options, ["ro"], f"options of {mount}")
            found[target] = (DOCKER / source).resolve()
        else:
            expect(any(source in (read(name).get("volumes") or {}) for name in FILES), f"there is no volume {source}")
    return found


def check(_folder):
    """Returns a line about the services; raises Failure if something does not fit."""
    if yaml is None:
        raise Skip("no PyYAML here: scripts/test-requirements.txt")
    services = merged_services()
    for name, service in services.items():
        expect("image" in service, f"{name} has no image")
        mounts(service)
        for needed in service.get("depends_on", ()):
            expect(needed in services, f"{name} depends on {needed}, which is not a service")
    images = [service["image"] for name, service in services.items() if service["image"] != "martlet"]
    expect(all(re.search(r":v?\d+\.\d+\.\d+}?$", image) for image in images), f"an image without a version: {images}")

    nodes = {name: service for name, service in services.items() if "NODE_NAME" in service["environment"]}
    expect_equal(sorted(nodes), ["edge", "phone", "tablet"], "the nodes")
    addresses = set()
    for name, node in nodes.items():
        host, _, port = node["environment"]["HTTP_LISTEN"].rpartition(":")
        expect_equal(host, "0.0.0.0", f"listen address of {name}")
        expect("MARTLET_HTTP_TOKEN" in node["environment"], f"{name} has no token")
        addresses.add(f"{name}:{port}")
    expect('${HTTP_LISTEN:+--http "$HTTP_LISTEN"}' in (DOCKER / "start-node.sh").read_text(), "start-node.sh does not listen")

    prometheus, files = services["prometheus"], mounts(services["prometheus"])
    expect_equal(files["/etc/prometheus/alerts.yaml"], OBSERVABILITY / "alerts.yaml", "the rules")
    configuration = yaml.safe_load(files["/etc/prometheus/prometheus.yml"].read_text())
    (job,) = configuration["scrape_configs"]
    (targets,) = job.pop("static_configs")
    expect_equal(set(targets["targets"]), addresses, "targets of Prometheus")
    (secret,) = prometheus["secrets"]
    expect_equal(job.pop("authorization"), {"credentials_file": f"/run/secrets/{secret}"}, "the token of Prometheus")
    expect_equal(read(FILES[1])["secrets"][secret], {"environment": "MARTLET_HTTP_TOKEN"}, "source of the token")
    plain = yaml.safe_load((OBSERVABILITY / "prometheus.yaml").read_text())
    plain["scrape_configs"][0].pop("static_configs")
    expect_equal(configuration, plain, "prometheus.compose.yaml, except for its targets")

    files = mounts(services["grafana"])
    (source,) = yaml.safe_load(files["/etc/grafana/provisioning/datasources/martlet.yaml"].read_text())["datasources"]
    expect_equal(source["type"], "prometheus", "type of the data source")
    expect_equal(source["url"], f"http://prometheus:{container_port(prometheus)}", "address of Grafana's data source")
    expect_equal(source["jsonData"]["timeInterval"], configuration["global"]["scrape_interval"], "scrape interval in Grafana")
    (provider,) = yaml.safe_load(files["/etc/grafana/provisioning/dashboards/martlet.yaml"].read_text())["providers"]
    expect_equal(files.get(f"{provider['options']['path']}/martlet.json"), OBSERVABILITY / "dashboard.json", "the dashboard")
    uid = json.loads((OBSERVABILITY / "dashboard.json").read_text())["uid"]
    expect(f"localhost:3000/d/{uid}," in (DOCKER / FILES[1]).read_text().replace(" ", ","), "the dashboard's address")
    for name in ("prometheus", "grafana"):
        expect(all(port.startswith("127.0.0.1:") for port in services[name]["ports"]), f"{name} is reachable from other machines")
    return f"{len(services)} services of compose.observability.yaml are consistent"


def container_port(service):
    (port,) = service["ports"]
    return port.rpartition(":")[2]
