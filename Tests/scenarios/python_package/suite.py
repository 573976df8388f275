"""Runs the unit tests of the Python package with the given martlet: from the source, and from a wheel that contains the
command, installed without network in a fresh virtual environment.

    python3 Tests/scenarios/python_package --binary .build/debug/martlet [source] [wheel]
"""

import os
import pathlib
import subprocess
import sys
import tempfile

from shared import command_line
from shared.repository import ROOT

PACKAGE = ROOT / "python"


def source(binary, folder):
    """The tests on the package as it is in the repository."""
    test(sys.executable, {"MARTLET_BINARY": str(binary), "PYTHONPATH": str(PACKAGE)}, PACKAGE)


def wheel(binary, folder):
    """The tests on an installed wheel. It brings its command: there is no other one."""
    if subprocess.run([ROOT / "scripts" / "test-venv.sh"], stdout=subprocess.DEVNULL).returncode != 0:
        print("skipped wheel: scripts/test-requirements.txt can't be installed here")
        return
    made = subprocess.run(
        [ROOT / "scripts" / "wheel.sh", binary, folder / "wheels"], stdout=subprocess.PIPE, text=True, check=True)
    path = pathlib.Path(made.stdout.strip())
    if not path.name.endswith("_x86_64.whl") and not path.name.endswith("_aarch64.whl"):
        raise AssertionError(f"{path.name} has no platform, but contains a program")
    venv = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    subprocess.run(
        [venv / "bin" / "pip", "--disable-pip-version-check", "install", "--quiet", "--no-index", path], check=True)
    # The tests alone: beside the package, Python would import that instead.
    (folder / "tests").symlink_to(PACKAGE / "tests")
    test(venv / "bin" / "python", {"MARTLET_BINARY": None, "PYTHONPATH": None, "PATH": "/usr/bin:/bin"}, folder)
    # What a person types, and the same without the script.
    for command in [[venv / "bin" / "martlet"], [venv / "bin" / "python", "-m", "martlet"]]:
        subprocess.run([*command, "--version"], check=True, cwd=folder)
    # Those who get the program must get its licence.
    subprocess.run([venv / "bin" / "python", "-c", "import importlib.metadata as m; "
                    "assert any(path.name == 'LICENSE' for path in m.files('martlet'))"], check=True, cwd=folder)
    subprocess.run([venv / "bin" / "python", "-c", "import martlet, pathlib; "
                    "assert (pathlib.Path(martlet.__file__).parent / 'py.typed').exists()"], check=True, cwd=folder)


def test(python, changed, folder):
    environment = {**os.environ, **{name: value for name, value in changed.items() if value is not None}}
    for name, value in changed.items():
        if value is None:
            environment.pop(name, None)
    subprocess.run([python, "-m", "unittest", "discover", "--start-directory", "tests", "--top-level-directory", "."],
                   cwd=folder, env=environment, check=True)


PARTS = {"source": source, "wheel": wheel}


def main():
    parser = command_line.make_parser(__doc__, build="debug")
    arguments = command_line.parse_names(parser, "part", PARTS)
    command_line.expect_binary(parser, arguments)
    for name in arguments.names or PARTS:
        with tempfile.TemporaryDirectory(prefix="martlet-package-") as folder:
            try:
                PARTS[name](arguments.binary.resolve(), pathlib.Path(folder))
            except (subprocess.CalledProcessError, AssertionError) as error:
                print(f"failed  {name}: {error}")
                return 1
        print(f"passed  {name}", flush=True)
    return 0
