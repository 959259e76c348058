"""A server from its start to its end: everything is made here, and ended here."""

from __future__ import annotations

import logging
import shlex
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from litestar import Litestar

from bough.control.clock import SteadyClock
from bough.control.credential_keys import CredentialKeys
from bough.control.people.key_rotation import Rotation, rotate
from bough.control.records import change_history
from bough.control.site import Site
from bough.control.startup import Started, start
from bough.errors import Invalid
from bough.model.names import plain_name_fault
from bough.server.application import make_application
from bough.server.authenticator import Authenticator
from bough.server.backend_file import has_local
from bough.server.backend_hosts import go_first, running_lock, task_files
from bough.server.connections import OpenConnections
from bough.server.data_cleaner import DataCleaner
from bough.server.data_folder import (
    existing_store,
    open_store,
    settle_task_folder,
    write_secret,
)
from bough.server.disk_space import DiskSpace
from bough.server.example import TRIED, make_example
from bough.server.http_server import HttpServer, find_bounds
from bough.server.listening_socket import Listening, shown
from bough.server.loop_watch import LoopWatch
from bough.server.notification_senders import NetworkSender
from bough.server.notifier import Notifier
from bough.server.process_start import bound_heaps, log_to_standard_error, make_site
from bough.server.server_key import ServerKey
from bough.server.settings import Settings
from bough.server.workers.supervision import Workers
from bough.store.migration import upgrade

LOG = logging.getLogger(__name__)


class Running(msgspec.Struct, frozen=True):
    """A server that is put together, and not yet answering."""

    #: What answers requests; `None`: workers do.
    application: Litestar | None
    workers: Workers | None
    site: Site
    loop: LoopWatch
    disks: DiskSpace
    started: Started


def serve(settings: Settings) -> None:
    """Answer requests until told to stop."""
    bound_heaps()
    log_to_standard_error()
    with put_together(settings) as running:
        listening = Listening(settings, running_lock(settings))
        address = shown(listening.socket)
        for warning in running.started.warnings:
            LOG.warning("%s", warning)
        public_url = _public_url(settings, address)
        running.loop.listens_at(public_url)
        running.disks.start()
        cleaner = DataCleaner(running.site, running.loop.backends)
        cleaner.start()
        bounds = find_bounds(settings)
        try:
            if running.workers is not None:
                running.workers.begin(listening.socket, public_url)
                _announce(settings, address, running.started)
                running.workers.run()
            elif running.application is not None:
                running.application.state.public_url = public_url
                connections = OpenConnections(bounds, settings.trusted_proxies)
                server = HttpServer(running.application, connections, running.loop.stopping)
                _announce(settings, address, running.started)
                server.run(sockets=[listening.socket])
        finally:
            listening.close()
            cleaner.stop()
            running.disks.stop()


def _public_url(settings: Settings, address: str) -> str:
    """What links begin with: as told, or else where the server listens."""
    if settings.public_url is not None:
        return settings.public_url
    parts = urlsplit(address)
    if not ip_address(parts.hostname or "").is_unspecified:
        return address
    # It listens on all addresses of the machine; its name is as good as any of them.
    found = f"http://{socket.gethostname()}:{parts.port}"
    LOG.warning("links begin with %s; --public-url says what they should begin with", found)
    return found


def upgrade_database(settings: Settings) -> str:
    """Migrate the database; returns its revision."""
    store = open_store(settings)
    try:
        return upgrade(store)
    finally:
        store.close()


def rotate_key(settings: Settings) -> Rotation:
    """Encrypt all credentials with a new key; servers may run meanwhile."""
    with existing_store(settings) as store:
        keys = CredentialKeys(settings.credential_key_file)
        return rotate(Site(store, namespace=settings.namespace, credential_keys=keys))


@contextmanager
def put_together(settings: Settings) -> Iterator[Running]:
    """Make everything, and close it afterwards: the scheduler first, then the database."""
    fault = plain_name_fault("Namespace", settings.namespace)
    if fault is not None:
        raise Invalid(fault)
    store = open_store(settings)
    clock = SteadyClock.continued(settings.data / "clock")
    disks = DiskSpace(settings, store)
    loop = LoopWatch(settings, clock, task_files(settings, clock.now_ms))
    site = make_site(settings, store, clock, loop.ring, disks.refusal)
    notifier = Notifier(site, NetworkSender(site.notifications))
    workers = None if settings.workers == 1 else Workers(settings, clock, loop)
    try:
        loop.start()
        if workers is not None:
            workers.start()
        # The example has pools of its own.
        keep = partial(write_secret, settings.admin_token_file)
        started = start(
            site,
            default_pool=not settings.example,
            keep_secret=keep,
            policy=None if settings.policy is None else str(settings.policy),
        )
        settle_task_folder(settings)
        if has_local(settings):
            go_first()
        application = None
        if workers is None:
            application = _application(settings, site, loop, disks)
        else:
            # They read it; it is made here.
            ServerKey.of(settings.data)
            workers.count_from(change_history.last_event(site))
        ready = loop.begin()
        if settings.example:
            make_example(site, ready.gpus)
        notifier.start()
        warnings = (*ready.warnings, *disks.faults())
        yield Running(application, workers, site, loop, disks, _warned(started, warnings))
    finally:
        if workers is not None:
            workers.stop()
        notifier.stop()
        loop.stop()
        site.store.close()
        clock.keep(settings.data / "clock")


def _application(settings: Settings, site: Site, loop: LoopWatch, disks: DiskSpace) -> Litestar:
    """What answers requests where this process does."""
    application = make_application(
        Authenticator(site, settings.trusted_proxies),
        loop,
        maximum_body_bytes=settings.maximum_body_bytes,
    )
    application.state.server_key = ServerKey.of(settings.data)
    application.state.faults = disks.faults
    application.state.gauges.begin()
    return application


def _warned(started: Started, warnings: tuple[str, ...]) -> Started:
    return msgspec.structs.replace(started, warnings=(*started.warnings, *warnings))


def _announce(settings: Settings, address: str, started: Started) -> None:
    """Say on standard output where the server is and what to try; it answers when this is read."""
    lines = [f"Bough listens on {address}"]
    token = settings.admin_token_file
    if token.exists():
        made = "A token for the first administrator is in"
        again = "The first administrator's token is in"
        lines.append(f"{again if started.admin_token is None else made} {token}")
        secret = f"$(cat {shlex.quote(str(token))})"
        lines += ["In another terminal:", f"  export BOUGH_SERVER={address} BOUGH_TOKEN={secret}"]
        asked = TRIED if settings.example else ("pool list", "queue list", "resource list")
        lines += [f"  {_program()} {each}" for each in asked]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def _program() -> str:
    """The program as it was started, if it can be started like that again."""
    started = Path(sys.argv[0])
    return str(started) if started.name in ("bough", "osmo") else "bough"
