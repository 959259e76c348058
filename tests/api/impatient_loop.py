"""The process of a loop that gives its thread only a moment; for tests."""

from bough.server import loop_process, thread_liveness

thread_liveness.IDLE_S = 5.0
main = loop_process.main
