"""Starts a bed with 8 nodes of 8 GPUs, and keeps it until Ctrl-C."""

from __future__ import annotations

import signal
import sys

from tests.kubernetes.bed.build import NoGo
from tests.kubernetes.bed.cluster import Bed
from tests.kubernetes.bed.objects import namespace, node

NODES, GPUS = 8, 8


def main() -> int:
    """Print the line that names its kubeconfig once it is ready, and wait."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        with Bed() as bed:
            for number in range(NODES):
                bed.ask("POST", "/api/v1/nodes", node(f"node-{number}", GPUS))
            bed.ask("POST", "/api/v1/namespaces", namespace("bough"))
            print(f"export KUBECONFIG={bed.kubeconfig}", flush=True)
            print(f"{NODES} nodes of {GPUS} GPUs at {bed.url}; Ctrl-C ends it", file=sys.stderr)
            signal.pause()
    except NoGo as missing:
        print(missing, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
