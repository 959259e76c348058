"""Makes etcd, kube-apiserver and kwok from the module in this folder, once for each version."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.go_build import GoModule, NoGo, report

__all__ = ["NoGo", "programs"]

#: What is built, and what the linker is told about each. An apiserver that was not told its
#: version reports v0.0.0, and refuses to start with settings of any other.
KUBERNETES, KWOK = "v1.36.3", "v0.8.0"
_VERSION = "k8s.io/component-base/version"
PROGRAMS = {
    "etcd": ("go.etcd.io/etcd/server/v3", {}),
    "kube-apiserver": (
        "k8s.io/kubernetes/cmd/kube-apiserver",
        {
            f"{_VERSION}.gitVersion": KUBERNETES,
            f"{_VERSION}.gitMajor": KUBERNETES[1:].split(".", maxsplit=1)[0],
            f"{_VERSION}.gitMinor": KUBERNETES.split(".")[1],
        },
    ),
    "kwok": ("sigs.k8s.io/kwok/cmd/kwok", {"sigs.k8s.io/kwok/pkg/consts.Version": KWOK}),
}
FOLDER = Path(__file__).parent
BED = GoModule(FOLDER, "bough-bed", PROGRAMS, "the tests on a real apiserver")


def programs() -> Path:
    """The folder with the three programs; those that are missing are built, which takes minutes."""
    return BED.build()


if __name__ == "__main__":
    sys.exit(report(programs))
