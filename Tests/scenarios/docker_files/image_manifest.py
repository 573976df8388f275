"""Checks that the image's build gets every target that Package.swift names.

Runs the instructions of the Dockerfile's stage `manifest` in a folder, with only the files that the .dockerignore allows.
"""

import shutil
import subprocess

from shared.repository import ROOT
from shared.waiting import Failure

DOCKERFILE = ROOT / "docker" / "Dockerfile"
STAGE = "manifest"


def check(folder):
    """Runs the stage in a folder. Returns a line about it; raises Failure if an instruction fails."""
    allowed = [line[1:] for line in DOCKERFILE.with_name("Dockerfile.dockerignore").read_text().splitlines()
               if line.startswith("!")]
    context, image = folder / "context", folder / "image"
    for path in (context, image):
        path.mkdir()
    for name in allowed:
        copy([ROOT / name], context)
    for instruction, words in instructions():
        if instruction == "COPY":
            copy([found for pattern in words[:-1] for found in context.glob(pattern)], image)
        elif instruction == "RUN":
            done = subprocess.run(["sh", "-c", " ".join(words)], cwd=image, capture_output=True, text=True)
            if done.returncode != 0:
                raise Failure(f"the image can't be built: {' '.join(words)}\n{done.stdout}{done.stderr}")
    return f"the image's stage {STAGE} gets every target of Package.swift"


def instructions():
    """The instructions of the stage, each with its words."""
    is_inside, found = False, []
    for line in DOCKERFILE.read_text().splitlines():
        words = line.split()
        if words[:1] == ["FROM"]:
            is_inside = words[-2:] == ["AS", STAGE]
        elif is_inside and words[:1] in (["COPY"], ["RUN"]):
            found.append((words[0], words[1:]))
    if not any(instruction == "RUN" for instruction, _ in found):
        raise Failure(f"{DOCKERFILE} has no stage {STAGE} with a RUN instruction")
    return found


def copy(sources, folder):
    """Copies as the instruction COPY does, except that each folder keeps its name."""
    for source in sources:
        if source.is_dir():
            shutil.copytree(source, folder / source.name)
        elif source.exists():
            shutil.copy(source, folder)
