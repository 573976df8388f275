"""Names what pyproject.toml can't: whether the wheel contains the command, and so runs on one platform only.

scripts/wheel.sh puts the command into the package.
"""

import pathlib

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel

HAS_COMMAND = (pathlib.Path(__file__).resolve().parent / "martlet" / "_bin" / "martlet").exists()


class PlatformWheel(bdist_wheel):
    """A wheel for any Python 3, on this platform if it contains the command."""

    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = not HAS_COMMAND

    def get_tag(self):
        python, abi, platform = super().get_tag()
        return ("py3", "none", platform) if HAS_COMMAND else (python, abi, platform)


setup(
    cmdclass={"bdist_wheel": PlatformWheel},
    entry_points={"console_scripts": ["martlet = martlet.__main__:main"]} if HAS_COMMAND else {},
)
