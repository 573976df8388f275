"""Says what pyproject.toml can't: whether the wheel contains the command, and so is for one platform only.

scripts/wheel.sh puts the command into the package.
"""

import pathlib

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel

HAS_COMMAND = (pathlib.Path(__file__).resolve().parent / "martlet" / "_bin" / "martlet").exists()


class PlatformDistribution(Distribution):
    """Has files for one platform, if it contains the command."""

    def has_ext_modules(self):
        return HAS_COMMAND


class PlatformWheel(bdist_wheel):
    """A wheel for any Python 3, since the command does not depend on Python."""

    def get_tag(self):
        python, abi, platform = super().get_tag()
        return ("py3", "none", platform) if HAS_COMMAND else (python, abi, platform)


setup(
    distclass=PlatformDistribution,
    cmdclass={"bdist_wheel": PlatformWheel},
    entry_points={"console_scripts": ["martlet = martlet.__main__:main"]} if HAS_COMMAND else {},
)
