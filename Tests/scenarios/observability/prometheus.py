"""Runs Prometheus with the files of docker/observability, and queries its API."""

import json
import re
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import yaml

from shared import brokers
from shared.repository import ROOT
from shared.waiting import Failure, Skip, eventually, expect, expect_equal

FOLDER = ROOT / "docker" / "observability"
INTERVAL_SECONDS = 1
#: Replacements for `for:` and for the ranges of the rules, because a test can't wait for hours.
SHORT_FOR = "2s"
SHORT_RANGE = "10s"
#: Thresholds of rules that are times or sizes, and their replacements.
SHORT_THRESHOLDS = {
    "MartletReadStuck": ("> 60", "> 4"),
    "MartletBehind": ("> 300", "> 4"),
    "MartletSlowToArrive": ("> 60", "> 4"),
    "MartletNodeSilent": ("> 7 * 86400", "> 20"),
    "MartletHistoryHeld": ("> 67108864", "> 0"),
}


def shipped_rules():
    return (FOLDER / "alerts.yaml").read_text()


def alert_names():
    return [rule["alert"] for group in yaml.safe_load(shipped_rules())["groups"] for rule in group["rules"]]


def shortened_rules():
    """The rules as shipped, except that durations of minutes and hours become seconds."""
    rules = yaml.safe_load(shipped_rules())
    for group in rules["groups"]:
        for rule in group["rules"]:
            if "for" in rule:
                rule["for"] = SHORT_FOR
            rule["expr"] = re.sub(r"\[\d+[smhd]\]", f"[{SHORT_RANGE}]", rule["expr"])
            if rule["alert"] in SHORT_THRESHOLDS:
                long, short = SHORT_THRESHOLDS[rule["alert"]]
                expect(rule["expr"].endswith(long), f"{rule['alert']} does not end with {long}: {rule['expr']}")
                rule["expr"] = rule["expr"].removesuffix(long) + short
    return yaml.safe_dump(rules, sort_keys=False)


class Prometheus:
    """A Prometheus process on a free port, with its files in `folder`."""

    def __init__(self, folder):
        if shutil.which("prometheus") is None:
            raise Skip("no prometheus here: scripts/install-dependencies.sh --test")
        self._folder = folder
        self._process = None
        self._address = f"127.0.0.1:{brokers.free_port()}"

    def start(self, targets, rules):
        """Starts with docker/observability/prometheus.yaml, but with these targets and rules, and a short interval."""
        self._folder.mkdir()
        configuration = yaml.safe_load((FOLDER / "prometheus.yaml").read_text())
        expect_equal(configuration["rule_files"], ["alerts.yaml"], "the rule files of prometheus.yaml")
        for interval in ("scrape_interval", "evaluation_interval"):
            expect(interval in configuration["global"], f"prometheus.yaml has no {interval}")
            configuration["global"][interval] = f"{INTERVAL_SECONDS}s"
        (job,) = configuration["scrape_configs"]
        job["static_configs"][0]["targets"] = targets
        (self._folder / "prometheus.yaml").write_text(yaml.safe_dump(configuration))
        (self._folder / "alerts.yaml").write_text(rules)
        log = open(self._folder / "prometheus.log", "ab")
        with log:
            self._process = subprocess.Popen(
                ["prometheus", f"--config.file={self._folder / 'prometheus.yaml'}",
                 f"--storage.tsdb.path={self._folder / 'data'}", f"--web.listen-address={self._address}"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        eventually("Prometheus is ready", self._is_ready)

    def close(self):
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _is_ready(self):
        if self._process.poll() is not None:
            log = (self._folder / "prometheus.log").read_text().splitlines()
            raise Failure("\n".join(["Prometheus ended:", *(line for line in log if "level=error" in line)]))
        try:
            with urllib.request.urlopen(f"http://{self._address}/-/ready", timeout=10):
                return True
        except OSError:
            return False

    def query(self, path, **parameters):
        """The data of a response of the API. Raises Failure with Prometheus's error message."""
        url = f"http://{self._address}/api/v1/{path}?{urllib.parse.urlencode(parameters, doseq=True)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            said = error.read().decode(errors="replace")
            raise Failure(f"Prometheus rejects {path} {parameters}: {said}") from None

    def rules(self):
        """All rules by name."""
        return {rule["name"]: rule for group in self.query("rules")["groups"] for rule in group["rules"]}

    def targets(self):
        """The health of each target at its last scrape."""
        return {target["labels"]["instance"]: target["health"] for target in self.query("targets")["activeTargets"]}

    def alerts(self, *states):
        """The alerts in one of these states."""
        return [alert for alert in self.query("alerts")["alerts"] if alert["state"] in states]
