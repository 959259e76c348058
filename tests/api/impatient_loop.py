"""The process of a loop that gives its thread only a moment; for tests."""

import logging
import os
import sys

from bough.server import loop_process, thread_pulse

thread_pulse.IDLE_S = 5.0

if __name__ == "__main__":
    CODE = loop_process.main(*map(int, sys.argv[1:4]))
    logging.shutdown()
    os._exit(CODE)
