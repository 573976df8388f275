"""Static checks of the files in docker/. They need neither Docker nor a build of Martlet.

    python3 Tests/scenarios/docker_files image_manifest
    $(scripts/test-venv.sh)/bin/python Tests/scenarios/docker_files compose_files grafana_model

compose_files and grafana_model need packages of scripts/test-requirements.txt, and are skipped, visibly, without them.
"""

import argparse

from docker_files import compose_files, grafana_model, image_manifest
from shared import command_line, runner

CHECKS = {check.__name__.rpartition(".")[2]: check for check in (image_manifest, compose_files, grafana_model)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments = command_line.parse_names(parser, "check", CHECKS)
    outcomes = runner.run_all(CHECKS, arguments.names, "martlet-docker", lambda check, folder: check.check(folder))
    print(outcomes)
    return outcomes.exit_code
