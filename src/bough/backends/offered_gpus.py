"""GPUs that a backend offers although no machine has them, for trying things out."""

from __future__ import annotations

#: How many, where no number is given and none are found.
DEFAULT_GPUS = 8
#: What comes with each of them on a virtual node: as much as people usually ask for with a GPU.
CPU_MILLI_PER_GPU = 32_000
MEMORY_PER_GPU = 256 * 2**30
STORAGE_PER_GPU = 2**40
