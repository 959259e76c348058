"""Credentials printed by another program, as the tools of cloud providers do.

The program is run when a credential is needed and there is no valid one; what it prints is kept
until it expires, or until the apiserver refuses it.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import msgspec

from bough.errors import Unauthenticated
from bough.kube.access import KubeCredential

#: How long the program may take; some connect to a provider first.
PLUGIN_S = 60
#: How long before its expiry a credential is replaced.
EARLY_S = 10


class _Variable(msgspec.Struct):
    name: str
    value: str = ""


class ExecPlugin(msgspec.Struct, rename="camel"):
    """The `exec` part of a user in a kubeconfig file."""

    command: str
    api_version: str = "client.authentication.k8s.io/v1"
    args: list[str] | None = None
    env: list[_Variable] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class _PluginStatus(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _Printed(msgspec.Struct):
    status: _PluginStatus


class PluginCredential:
    """The credential that a plugin printed, as long as it is valid."""

    def __init__(
        self, plugin: ExecPlugin, at: str, folder: Path, cluster: Mapping[str, str]
    ) -> None:
        self._plugin = plugin
        #: The path of the field in the kubeconfig file, for messages.
        self._at = at
        self._folder = folder
        self._cluster = cluster
        self._lock = threading.Lock()
        self._kept: KubeCredential | None = None
        self._expires: datetime | None = None

    def credential(self) -> KubeCredential:
        """The kept credential, or a new one; only one thread at a time runs the program."""
        with self._lock:
            if self._kept is None or self._is_expired():
                status = self._ask()
                self._expires = status.expiration_timestamp
                self._kept = KubeCredential(
                    status.token, status.client_certificate_data, status.client_key_data
                )
            return self._kept

    def refused(self, credential: KubeCredential) -> bool:
        """Drop the refused credential, so that the program is run again, unless it already was."""
        with self._lock:
            if self._kept == credential:
                self._kept = None
        return True

    def _is_expired(self) -> bool:
        return self._expires is not None and self._expires.timestamp() - EARLY_S < time.time()

    def _ask(self) -> _PluginStatus:
        plugin = self._plugin
        # Like kubectl: a path with a slash is relative to the kubeconfig file.
        command = str(self._folder / plugin.command) if "/" in plugin.command else plugin.command
        said = {variable.name: variable.value for variable in plugin.env or []}
        try:
            done = subprocess.run(  # noqa: S603
                [command, *(plugin.args or [])],
                env={**os.environ, **said, "KUBERNETES_EXEC_INFO": self._told()},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=PLUGIN_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise self._failed(f"did not answer within {PLUGIN_S} s") from None
        except OSError as error:
            raise self._failed(f"cannot be run: {error.strerror}", plugin.install_hint) from None
        if done.returncode:
            words = done.stderr.decode("utf-8", "replace").strip()[-500:]
            raise self._failed(f"ended with code {done.returncode}: {words}", plugin.install_hint)
        return self._read(done.stdout)

    def _read(self, printed: bytes) -> _PluginStatus:
        try:
            status = msgspec.json.decode(printed, type=_Printed).status
        except msgspec.MsgspecError as error:
            raise self._failed(f"printed no ExecCredential: {error}") from None
        if not status.token and not (status.client_certificate_data and status.client_key_data):
            raise self._failed("printed an ExecCredential without a token or a certificate")
        return status

    def _told(self) -> str:
        spec: dict[str, object] = {"interactive": False}
        if self._plugin.provide_cluster_info:
            spec["cluster"] = dict(self._cluster)
        told = {"apiVersion": self._plugin.api_version, "kind": "ExecCredential", "spec": spec}
        return json.dumps(told)

    def _failed(self, why: str, hint: str = "") -> Unauthenticated:
        return Unauthenticated(f"{self._at}: {self._plugin.command} {why}", hint=hint)
