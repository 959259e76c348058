"""What may go wrong where tasks run on this machine."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

MUTATIONS = (
    Mutation(
        "the quota of a pool's data is not asked where contents are kept",
        "        check_room(index, space, sum(new[each] for each in new if not "
        "index.is_expected(each)))\n",
        "",
        "tests/local/test_pool_data.py -k each_fits",
    ),
    Mutation(
        "a draft is published though contents of it have not come",
        """    if missing:
        raise Conflict(f"{len(missing):,} contents of the draft have not come yet; send them.")
""",
        "",
        "tests/local/test_pool_data.py -k draft",
    ),
    Mutation(
        "what a session started is left when its process ends",
        "        if group is not None:\n            group.end()",
        "        if group is not None:\n            pass",
        "tests/e2e/test_local_sessions.py -k 'client_is_killed'",
    ),
    Mutation(
        "a supervisor that had secrets serves others",
        "    return not has_secrets",
        "    return True",
        "tests/local/test_supervisor_process.py -k secrets",
    ),
    Mutation(
        "the supervisor of an ended attempt keeps it",
        """        for task in self._tasks:
            task.close()
""",
        "",
        "tests/local/test_supervisor_process.py -k holds_nothing",
    ),
    Mutation(
        "how a task ended is not read from its namespace",
        "        told = None if self._status is None else read_status(self._status)",
        "        told = None",
        "tests/local/test_supervisor_private.py",
    ),
    Mutation(
        "a GPU is given twice",
        "for each in self._numbers.get(node, ()) if (node, each) not in self._holders]",
        "for each in self._numbers.get(node, ())]",
        "tests/local/test_backend_gangs.py",
    ),
    Mutation(
        "the end of an attempt is not on the disk",
        "            os.fsync(self._descriptor)\n",
        "            pass\n",
        "tests/local/test_attempt_state.py",
    ),
    Mutation(
        "the end of a task does not wait for the disk",
        "        if durably:\n            os.fsync(self._descriptor)\n",
        "",
        "tests/local/test_power.py",
    ),
    Mutation(
        "the log of a task does not wait for the disk",
        "                _sync(segment_path(self._folder, start))\n",
        "                pass\n",
        "tests/local/test_power.py",
    ),
    Mutation(
        "the results of a task do not wait for the disk",
        "    if libc.syncfs(descriptor):\n",
        "    if descriptor < 0:\n",
        "tests/local/test_power.py",
    ),
    Mutation(
        "the identity of a machine does not wait for the disk",
        '        write_whole(folders.machine, f"{uuid.uuid4().hex}\\n".encode())\n',
        '        write_whole(folders.machine, f"{uuid.uuid4().hex}\\n".encode(), durably=False)\n',
        "tests/local/test_power.py",
    ),
    Mutation(
        "orders of an earlier lease are followed",
        "not order.expired and (order.opening, order.number) >= _read(folders)",
        "not order.expired",
        "tests/local/test_backend.py -k supervisors_begin",
    ),
    Mutation(
        "a request that is made again keeps the lease of the first time",
        "            self._requests[decode_request(text).names] = text\n",
        "            self._requests.setdefault(decode_request(text).names, text)\n",
        "tests/local/test_supervisor_process.py -k still_one",
    ),
    Mutation(
        "settings of the machine stay writable in a task's /proc",
        "                syscalls.set_mount(mounted, add=syscalls.MOUNT_RDONLY, recursive=True)\n",
        "",
        "tests/local/test_view_of_tasks.py -k settings",
    ),
    Mutation(
        "the machine's devices stay writable mounts in a task's /dev",
        '            _make_read_only(devices, f"{self._path}/dev", syscalls.MOUNT_NOSUID)\n',
        "",
        "tests/local/test_devices.py -k mode_or_owner",
    ),
    Mutation(
        "the input of a task is the machine's /dev/null",
        "    syscalls.pivot_here()\n    _read_own_nothing()\n",
        "    syscalls.pivot_here()\n",
        "tests/local/test_view_of_tasks.py -k input",
    ),
    Mutation(
        "root can change the mode of the device that is shown in place of a hidden file",
        "                    self._protect_device(above, parts[-1], target)\n",
        "",
        "tests/local/test_devices.py -k mode_or_owner",
    ),
    Mutation(
        "a folder is mounted for a task without its flags",
        "            syscalls.set_mount(mount, add=attributes)\n",
        "",
        "tests/local/test_view_of_tasks.py -k writable",
    ),
)
