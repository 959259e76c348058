"""The heaps of a process with many threads, counted by the C library itself."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

THREADS = 12
#: Threads that are there at the same time each ask for memory; then the heaps are told.
PROGRAM = f"""
import ctypes, threading
from bough.server.process_start import bound_heaps
if BOUNDED:
    bound_heaps()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.fopen.restype = ctypes.c_void_p
together = threading.Barrier({THREADS})
def work():
    together.wait()
    libc.malloc(ctypes.c_size_t(4_000))
    together.wait()
threads = [threading.Thread(target=work) for _ in range({THREADS})]
for each in threads:
    each.start()
for each in threads:
    each.join()
out = ctypes.c_void_p(libc.fopen(b"/dev/stdout", b"w"))
libc.malloc_info(0, out)
libc.fclose(out)
"""

pytestmark = pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "mallopt"), reason="other C libraries than glibc have one heap"
)


def heaps(*, bounded: bool) -> int:
    program = PROGRAM.replace("BOUNDED", str(bounded))
    told = subprocess.run((sys.executable, "-c", program), capture_output=True, check=True)
    return told.stdout.count(b"<heap nr=")


def test_the_threads_of_a_server_share_two_heaps():
    assert 2 == heaps(bounded=True)
    assert heaps(bounded=False) > 2
