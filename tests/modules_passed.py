"""Measure what a reader has to pass: how many modules there are, and in how many something happens.

    .venv/bin/python -m tests.modules_passed [SRC]

Runs a server of the source tree SRC (default: this one) with the virtual backend, submits a
workflow, lets another one preempt it, plans a file, and counts the modules in which a function was
called meanwhile, in every process. Importing a module is not passing it. It also counts files and
lines, and names of classes that several modules have.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Makes every process note the files of functions that are called, beside the step of the story.
HOOK = """
import os, sys, threading
_log = os.open(os.environ["PASSED_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC)
_step, _root, _seen = os.environ["PASSED_STEP"], os.environ["PASSED_ROOT"], set()
_OF_FUNCTIONS = 1

def _note(frame, event, _argument):
    code = frame.f_code
    if event != "call" or not code.co_flags & _OF_FUNCTIONS or code.co_name.startswith("<"):
        return
    name = code.co_filename
    if not name.startswith(_root):
        return
    try:
        step = os.readlink(_step)
    except OSError:
        return
    if (step, name) not in _seen:
        _seen.add((step, name))
        os.write(_log, f"{step} {name[len(_root):]}\\n".encode())

threading.setprofile(_note)
sys.setprofile(_note)
"""
SPEC = """
workflow:
  name: {name}
  tasks:
  - {{name: work, image: x, command: [sleep], args: ["600"], resource: all}}
  resources:
    all: {{gpu: 8}}
"""
STEPS = {"submit": "a submit, until it runs", "preempt": "a preemption", "plan": "`bough plan`"}


class Story:
    """The commands of one source tree, and which functions they call."""

    def __init__(self, source: Path, folder: Path) -> None:
        self.folder = folder
        self._log, self._step = folder / "passed", folder / "step"
        (folder / "hook").mkdir()
        (folder / "hook/sitecustomize.py").write_text(HOOK)
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(folder / "hook"), str(source))),
            "PASSED_LOG": str(self._log),
            "PASSED_STEP": str(self._step),
            "PASSED_ROOT": f"{source}/",
            "XDG_CONFIG_HOME": str(folder),
        }

    def begin(self, step: str) -> None:
        self._step.unlink(missing_ok=True)
        self._step.symlink_to(step)

    def end(self) -> None:
        self._step.unlink()

    def run(self, *arguments: str) -> str:
        command = [sys.executable, "-m", "bough", *arguments]
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            sys.exit(f"bough {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout

    def submit(self, name: str, priority: str) -> None:
        path = self.folder / f"{name}.yaml"
        path.write_text(SPEC.format(name=name))
        self.run("workflow", "submit", str(path), "--pool", "default", "--priority", priority)

    def wait_until(self, name: str, status: str) -> None:
        for _ in range(200):
            if re.search(rf"\b{status}\b", self.run("workflow", "query", f"{name}-1")):
                return
            time.sleep(0.2)
        sys.exit(f"{name} is never {status}")

    def passed(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = defaultdict(set)
        for line in self._log.read_text().splitlines():
            step, _, module = line.partition(" ")
            found[step].add(module)
        return found


def tell(source: Path, folder: Path) -> dict[str, set[str]]:
    story = Story(source, folder)
    data = folder / "data"
    command = [sys.executable, "-m", "bough", "serve", "--data", str(data), "--port", "0"]
    options = ["--backend", "virtual", "--gpus", "8"]
    # In a file, since a pipe that is not read would stop it.
    said = folder / "said"
    with said.open("wb") as output:
        server = subprocess.Popen(
            [*command, *options], env=story.environment, stdout=output, stderr=output
        )
    try:
        token = data / "admin-token"
        for _ in range(300):
            found = re.search(r"http://127\.0\.0\.1:\d+", said.read_text())
            if found and token.exists():
                break
            time.sleep(0.2)
        else:
            sys.exit(f"the server does not start: {said.read_text()}")
        story.environment |= {"BOUGH_SERVER": found[0], "BOUGH_TOKEN": token.read_text().strip()}
        story.begin("submit")
        story.submit("small", "LOW")
        # The next cycle starts it; asking whether it runs is not part of the story.
        time.sleep(3)
        story.end()
        story.wait_until("small", "RUNNING")
        story.begin("preempt")
        story.submit("large", "NORMAL")
        time.sleep(4)
        story.end()
        story.wait_until("large", "RUNNING")
    finally:
        server.terminate()
        server.wait()
    story.begin("plan")
    story.run("plan", str(ROOT / "docs/examples/busy.yaml"))
    story.end()
    return story.passed()


def shared_classes(files: list[Path]) -> list[str]:
    modules: dict[str, int] = defaultdict(int)
    for path in files:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for name in {each.name for each in tree.body if isinstance(each, ast.ClassDef)}:
            modules[name] += 1
    return sorted(name for name, count in modules.items() if count > 1)


def main() -> None:
    source = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "src").resolve()
    files = sorted((source / "bough").rglob("*.py"))
    lines = [len(path.read_text(encoding="utf-8").splitlines()) for path in files]
    shared = shared_classes(files)
    say(f"files {len(files)}, lines {sum(lines)}, {sum(lines) // len(files)} on average")
    say(f"names of classes in several modules: {len(shared)} ({', '.join(shared)})")
    with tempfile.TemporaryDirectory(prefix="bough-passed-") as folder:
        passed = tell(source, Path(folder))
    for step, name in STEPS.items():
        packages = Counter(module.split("/")[1] for module in passed[step])
        parts = ", ".join(f"{package} {count}" for package, count in packages.most_common())
        say(f"modules passed by {name}: {len(passed[step])} ({parts})")


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    main()
