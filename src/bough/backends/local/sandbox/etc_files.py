"""Files that every program expects in /etc, for images that have none of them.

Container engines add these to every image, so many images lack them: without `hosts`, a program
does not find `localhost`, and without `resolv.conf` no other name either.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from bough.backends.local.sandbox import syscalls

_HOSTS = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"
#: What is there to be mounted over is empty.
_EXPECTED = {"hosts": _HOSTS, "resolv.conf": ""}


def add_missing(etc: int, path: str) -> None:
    """Add what the /etc of an image lacks, which is open and mounted at this path.

    The image stays as it is: an overlay shows both. Raises OSError where there is no such thing.
    """
    missing = [name for name in _EXPECTED if not _is_file(etc, name)]
    if not missing:
        return
    # It is hidden by the overlay, like the folder of the image below it.
    flags = syscalls.MS_NOSUID | syscalls.MS_NODEV
    syscalls.mount("none", path, "tmpfs", flags, "size=64k,mode=755")
    for name in missing:
        Path(path, name).write_text(_EXPECTED[name])
        Path(path, name).chmod(0o644)
    added = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # Paths can have any character, these do not.
        layers = f"lowerdir=/proc/self/fd/{added}:/proc/self/fd/{etc}"
        syscalls.mount("overlay", path, "overlay", flags | syscalls.MS_RDONLY, layers)
    except OSError:
        syscalls.unmount(path)
        raise
    finally:
        os.close(added)


def _is_file(folder: int, name: str) -> bool:
    """Whether a folder has a file of this name itself; a link leads anywhere, or nowhere."""
    try:
        return stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False
