#!/usr/bin/env python3
"""Whether the image's build gets all that Package.swift names: its stage `manifest`, without Docker.

Does in a folder what the stage does, with those files only that the .dockerignore lets through.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "docker" / "Dockerfile"
STAGE = "manifest"


def main():
    allowed = [line[1:] for line in DOCKERFILE.with_name("Dockerfile.dockerignore").read_text().splitlines()
               if line.startswith("!")]
    with tempfile.TemporaryDirectory() as folder:
        context, image = pathlib.Path(folder, "context"), pathlib.Path(folder, "image")
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
                    sys.exit(f"the image can't be built: {' '.join(words)}\n{done.stdout}{done.stderr}")
    print(f"the image's stage {STAGE} has all that Package.swift names")


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
        sys.exit(f"{DOCKERFILE} has no stage {STAGE} that runs anything")
    return found


def copy(sources, folder):
    """As COPY does where each folder goes into one of its own name."""
    for source in sources:
        if source.is_dir():
            shutil.copytree(source, folder / source.name)
        elif source.exists():
            shutil.copy(source, folder)


if __name__ == "__main__":
    main()
