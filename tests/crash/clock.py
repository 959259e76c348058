"""A machine whose clock is set while a server, and what keeps its tasks, run: by libfaketime.

The wall clock alone is faked. Python reads `sitecustomize` first, so the processes of a server can
be faked apart: it passes no variables on to those that keep tasks, but the places of modules.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.crash.postgres import cannot

_LIBRARIES = (
    Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"),
    Path("/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1"),
)
_KEEPERS = "bough.backends.local.supervisor.fork_server"
_CUSTOMIZE = """\
import json, os, select, sys, time
found = json.loads({config!r})
kind = "supervisors" if {keepers!r} in sys.orig_argv else "server"
offsets = found["offsets"].get(kind)
if offsets is not None and "LD_PRELOAD" not in os.environ:
    os.environ.update(
        LD_PRELOAD=found["library"],
        FAKETIME_TIMESTAMP_FILE=offsets,
        FAKETIME_DONT_FAKE_MONOTONIC="1",
        FAKETIME_NO_CACHE="1",
    )
    os.execv(sys.executable, sys.orig_argv)
if offsets is not None:
    # The library takes the moment to wake up for one of the faked clock, and refuses it.
    time.sleep = lambda seconds: select.select([], [], [], seconds) and None
"""


class FakedClock:
    """The wall clock of a server, of its supervisors, or of both."""

    def __init__(self, folder: Path, of: tuple[str, ...]) -> None:
        library = next((each for each in _LIBRARIES if each.exists()), None)
        if library is None:
            cannot("NOT TESTED: libfaketime is not installed, so no clock can be set.")
        folder.mkdir()
        self._offset = folder / "offset"
        self.set(0)
        offsets = dict.fromkeys(of, str(self._offset))
        config = json.dumps({"library": str(library), "offsets": offsets})
        text = _CUSTOMIZE.format(config=config, keepers=_KEEPERS)
        (folder / "sitecustomize.py").write_text(text)
        #: What a server is started within.
        self.within = ("env", f"PYTHONPATH={folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")

    def set(self, offset_s: int) -> None:
        """Set the clock so much before, or after, the real one."""
        part = self._offset.with_suffix(".part")
        part.write_text(f"{offset_s:+d}\n")
        part.replace(self._offset)
