"""Helm, made from the module in this folder once for each version, and what it makes of the chart.

A module of its own: in that of the bed it would change the versions of which the apiserver is made.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import yaml

from tests.go_build import GoModule

FOLDER = Path(__file__).parent
CHART = FOLDER.parents[2] / "deploy" / "bough"
HELM = GoModule(FOLDER, "bough-bed", {"helm": ("helm.sh/helm/v3/cmd/helm", {})}, "charts")


def helm() -> Path:
    """The program; it is built where it is missing, which takes a minute or two."""
    return HELM.build() / "helm"


def template(*values: str, namespace: str = "bough-system") -> list[dict[str, Any]]:
    """What `helm template` prints with some values, definitions included."""
    command = [str(helm()), "template", "bough", str(CHART), "--include-crds", "-n", namespace]
    for each in values:
        command += ["--set-string" if each.startswith("webhook.ca=") else "--set", each]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(done.stderr)
    return [each for each in yaml.safe_load_all(done.stdout) if each]
