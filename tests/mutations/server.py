"""What may go wrong in the server: its rights, its database, its loop."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

MUTATIONS = (
    Mutation(
        "the scheduler's process is left when its server is killed",
        "    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)\n",
        "",
        "tests/e2e/test_loop_process.py -k no_loop_is_left",
    ),
    Mutation(
        "the scheduler does not hear of what was submitted",
        "                os.eventfd_write(self._bell, 1)\n",
        "                pass\n",
        "tests/api/test_loop_watch.py",
    ),
    Mutation(
        "a loop that hangs is not noticed",
        "            elif not engine.stopping.is_set() and engine.pulse.fault:\n",
        "            elif False:\n",
        "tests/api/test_hanging_loop.py",
    ),
    Mutation(
        "a process that writes all the time keeps the others from writing",
        "        _await(file, _DOOR, until_s)\n",
        "",
        "tests/store/test_file_turns.py",
    ),
    Mutation(
        "the data of a pool is used without the right of the submitter",
        "    if not may_use(site, actor, pool, use.action):",
        "    if False:",
        "tests/api/test_pool_data.py",
    ),
    Mutation(
        "an archived subpool loses a part of its history",
        "    if config_type is ConfigType.SUBPOOL:",
        "    if False:",
        "tests/store/test_scenarios_drain.py -k 090",
    ),
    Mutation(
        "what came from a store is taken although it is damaged",
        "return None if found == checksum else",
        "return None if True else",
        "tests/e2e/test_store_transfers.py -k damaged",
    ),
    Mutation(
        "users reach into tasks of others",
        "    own = workflow.submitted_by == actor.name\n    if not own",
        "    own = True\n    if not own",
        "tests/api/test_matrix.py -k reach_into",
    ),
    Mutation(
        "the key of a session opens it again",
        "            return self._offers.pop(key) if fits else None",
        "            return found if fits else None",
        "tests/api/test_sessions.py",
    ),
    Mutation(
        "archive: what still holds a node is moved",
        "        ~left.exists(),\n",
        "",
        "tests/store/test_archive.py",
    ),
    Mutation(
        "archive: the GPU time of what is archived is forgotten",
        "        (ARCHIVED_STRETCHES, ARCHIVE, archived),\n",
        "",
        "tests/store/test_archive.py",
    ),
    Mutation(
        "archive: what is not over is dropped",
        "        for each in past:\n            _check_over(each)\n",
        "",
        "tests/store/test_archive.py",
    ),
    Mutation(
        "what is preempted is not queued again",
        "(TaskEvent.RESCHEDULE if own_fault else cause, code, acted, again=True)",
        "(TaskEvent.RESCHEDULE if own_fault else cause, code, acted)",
        "tests/store/test_scenarios_scheduling.py -k 149",
    ),
    Mutation(
        "the permission of routes is not checked",
        "    _authorise(authenticator.site, actor, declared, connection.path_params)\n",
        "",
        "tests/api/test_matrix.py",
    ),
    Mutation(
        "the permission to cancel a workflow is not checked",
        "    authorise(actor, action, resource_of(found or pool), site.role_names)\n",
        "",
        "tests/store/test_scenarios_access.py -k 133",
    ),
    Mutation(
        "an answered change is not on the disk",
        'cursor.execute("PRAGMA synchronous = FULL")',
        'cursor.execute("PRAGMA synchronous = OFF")',
        "tests/store/test_write_batches.py",
    ),
    Mutation(
        "a plan for an older state is applied",
        "        if not setting_store.raise_if(connection, setting_store.VERSION, plan.version):\n",
        "        if not setting_store.raise_counter(connection, setting_store.VERSION):\n",
        "tests/store/test_races.py -k too_late",
    ),
    Mutation(
        "tokens are kept as they are",
        "    return hashlib.sha256(secret.encode()).hexdigest()\n",
        "    return secret\n",
        "tests/store/test_people.py -k token",
    ),
    Mutation(
        "a token that has expired is taken",
        "    if expires_ms <= site.clock.now_ms():\n",
        "    if expires_ms <= 0:\n",
        "tests/store/test_people.py -k token",
    ),
    Mutation(
        "a submission counts on a pool that has changed",
        "    if version == known.version:\n",
        "    if True:\n",
        "tests/store/test_submission_cost.py",
    ),
    Mutation(
        "submissions that are kept together count on a pool that has changed",
        "        if any(each.setup != setup for each in drafts):\n",
        "        if False:\n",
        "tests/store/test_submission_cost.py",
    ),
    Mutation(
        "a submission that failed at its commit is tried again",
        "        if not under_way:\n            for each in batch:\n",
        "        if False:\n            for each in batch:\n",
        "tests/store/test_joined_submissions.py -k committed",
    ),
    Mutation(
        "rights of before a change are kept for later",
        "        if counted.access != access:\n",
        "        if False:\n",
        "tests/store/test_submission_cost.py",
    ),
    Mutation(
        "what was told is told again",
        "record_store.finish_outbox(connection, done)\n",
        "pass\n",
        "tests/store/test_outbox.py",
    ),
    Mutation(
        "time limits are ignored",
        "    if limit_s is None or since_ms is None or over:\n",
        "    if limit_s is None or since_ms is not None or over:\n",
        "tests/store/test_timeouts.py -k sqlite",
    ),
    Mutation(
        "a plan comes true without its events",
        "    record_store.add_events("
        "connection, [event for change in changes for event in change.events()])\n",
        "",
        "tests/store/test_scenarios_borrowing.py -k eviction",
    ),
    Mutation(
        "what fails half-way stays",
        "            if self.parts:\n                self._transaction.commit()\n",
        "            self._transaction.commit()\n",
        "tests/store/test_write_batches.py",
    ),
    Mutation(
        "SQLite does not wait for the disk",
        'cursor.execute("PRAGMA synchronous = FULL")',
        'cursor.execute("PRAGMA synchronous = OFF")',
        "tests/e2e/test_power.py -k sqlite",
    ),
    Mutation(
        "PostgreSQL need not wait for the disk",
        '        event.listen(engine, "connect", _commit_to_disk)\n',
        "",
        "tests/store/test_write_batches.py -k configured",
    ),
    Mutation(
        "secrets and keys do not wait for the disk",
        "                file.flush()\n                os.fsync(descriptor)\n",
        "                pass\n",
        "tests/local/test_power.py",
    ),
    Mutation(
        "the names of secrets and keys do not wait for the disk",
        "    if durably:\n        sync_folder(path.parent)\n",
        "",
        "tests/local/test_power.py",
    ),
    Mutation(
        "a server that has lost its lease goes on writing",
        'connection.execute(_STAYS_MINE, {"mine": number}).first() is None',
        "False",
        "tests/store/test_lease.py -k sqlite",
    ),
    Mutation(
        "credentials are stored as they are sent",
        "AESGCM(self._keys[0]).encrypt(nonce, plain, bound_to)",
        "plain",
        "tests/store/test_credentials.py -k sqlite",
    ),
    Mutation(
        "a credential can be given to another user in the database",
        '("credential", credential.user, credential.name, credential.type.value)',
        '("credential", credential.name, credential.type.value)',
        "tests/store/test_credentials.py -k sqlite",
    ),
    Mutation(
        "there is no reserve for a full disk",
        "                keep_reserve(self._store)\n",
        "",
        "tests/e2e/test_full_disk.py -k database",
    ),
    Mutation(
        "what an archived workflow left is no input",
        "        if task.status is TaskStatus.COMPLETED\n    }\n\n\ndef _inputs",
        "        if False\n    }\n\n\ndef _inputs",
        "tests/store/test_archive.py -k still_an_input",
    ),
    Mutation(
        "a workflow starts although what it follows has failed",
        "    if not ended.completed or standing == WorkflowStatus.COMPLETED:",
        "    if True:",
        "tests/store/test_predecessors.py -k no_success",
    ),
    Mutation(
        "an array makes more elements than it may have at a time",
        "        room = min(room, array.at_once - alive)",
        "        room = min(room, array.at_once)",
        "tests/api/test_arrays.py -k one_until",
    ),
    Mutation(
        "what does not start ends before that is stored",
        "        change.release(task, stuck_reason(observation.fault), observation.message)\n",
        "",
        "tests/store/test_states.py -k stuck",
    ),
)
