"""The settings of a server."""

from __future__ import annotations

import re
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from bough.data_folder_names import ADMIN_TOKEN_FILE, DATABASE_FILE, KEY_FILE
from bough.errors import Invalid
from bough.formats.yaml.quantity import parse_quantity
from bough.model.notification import origin_of

Network = IPv4Network | IPv6Network

LOOPBACK = "127.0.0.1"
PORT = 8265
#: The folder of the files of tasks, in the data folder.
TASK_FOLDER = "local"
#: The folder of the logs of pods, in the data folder; below it one for each backend.
POD_FOLDER = "kubernetes"
#: The file that says where that folder is instead, in the data folder.
TASK_FOLDER_FILE = "task-folder"
MAXIMUM_BODY_BYTES = 8 << 20
#: What is kept of the log of one attempt, and for how long after its end.
LOG_BYTES = 64 << 20
KEEP_DAYS = 30
#: Connections at one time, in all and of one address.
CONNECTIONS = 2_000
CONNECTIONS_PER_ADDRESS = 1_000
#: Processes and threads that one task may have.
TASK_PROCESSES = 32_768
#: The account that tasks run as where the server is root.
TASK_USER = "bough-task"
_VISIBLE = re.compile(r"[!-~]+")


class Settings(msgspec.Struct, frozen=True):
    """The settings of one server."""

    data: Path
    host: str = LOOPBACK
    port: int = PORT
    #: `None`: a file in the data folder.
    database: str | None = None
    #: What links to this server begin with; `None`: where it listens.
    public_url: str | None = None
    backend: str = "local"
    #: Of the backend kubernetes: how its cluster is reached, and where in it pods are made.
    kubeconfig: Path | None = None
    context: str | None = None
    kube_namespace: str = "bough"
    #: A claim for data between tasks, and an image with a shell.
    kube_volume: str | None = None
    kube_volume_image: str | None = None
    #: Which scheduler decides where pods run: `bough` or `kai`.
    kube_decider: str = "bough"
    #: A file with several backends, instead of one kind.
    backends: Path | None = None
    #: `None`: those that are found, or a few to try it out.
    gpus: int | None = None
    #: CPUs, memory and disk to offer; `None`: what the machine has.
    cpu_milli: int | None = None
    memory_bytes: int | None = None
    storage_bytes: int | None = None
    #: A file with Nodes, instead of a number of GPUs.
    nodes: Path | None = None
    #: A policy file; `None`: cycles decide as it is configured.
    policy: Path | None = None
    #: A file that says what users may be told by e-mail and webhooks, and where.
    notifications: Path | None = None
    namespace: str = "default"
    example: bool = False
    #: Proxies whose headers name the user; by default none.
    trusted_proxies: tuple[Network, ...] = ()
    maximum_body_bytes: int = MAXIMUM_BODY_BYTES
    #: Processes that answer requests.
    workers: int = 1
    connections: int = CONNECTIONS
    connections_per_address: int = CONNECTIONS_PER_ADDRESS
    #: The file with the key that encrypts credentials; `None`: one in the data folder.
    key_file: Path | None = None
    #: The rest concerns tasks that really run; see backends.local.
    private: bool = True
    #: One of backends.local.options.TaskNetwork.
    task_network: str = "own"
    as_user: bool = False
    #: The account that tasks run as where the server is root; `None`: `TASK_USER`.
    task_user: str | None = None
    container_runner: str | None = None
    image_folder: Path | None = None
    task_processes: int = TASK_PROCESSES
    log_bytes: int = LOG_BYTES
    keep_days: int = KEEP_DAYS
    data_folders: tuple[Path, ...] = ()
    #: Where object stores of users' URLs may be, beside the providers' own addresses.
    store_endpoints: tuple[str, ...] = ()
    #: The folder for the files of tasks; `None`: one in the data folder.
    tasks: Path | None = None

    @property
    def address(self) -> str:
        """The database: a URL, or the path of a file."""
        return self.database or str(self.data / DATABASE_FILE)

    @property
    def credential_key_file(self) -> Path:
        """The file with the key that encrypts credentials."""
        return self.key_file or self.data / KEY_FILE

    @property
    def task_folder(self) -> Path:
        """Where the files of tasks are: as told now, or else as told before."""
        return self.tasks or self.last_task_folder

    @property
    def last_task_folder(self) -> Path:
        """Where the files of tasks were when a server was last started here."""
        try:
            return Path((self.data / TASK_FOLDER_FILE).read_text().rstrip("\n"))
        except OSError:
            return self.data / TASK_FOLDER

    @property
    def admin_token_file(self) -> Path:
        """Where the first administrator finds the token."""
        return self.data / ADMIN_TOKEN_FILE


def read_size(option: str, resource: str, text: str | None) -> int | None:
    """An amount that an option names, written as Kubernetes does."""
    if text is None:
        return None
    try:
        amount = parse_quantity(text, resource)
    except Invalid as error:
        raise Invalid(f"{option}: {error.message}.") from None
    if amount <= 0:
        raise Invalid(f"{option}: {text} must be more than 0.")
    return amount


def check_store_endpoint(text: str) -> str:
    """An address where an object store may be."""
    if origin_of(text) is None or not text.startswith(("http://", "https://")):
        raise Invalid(f"--store-endpoint cannot be {text!r}: write for example https://host:9000.")
    return text


def check_public_url(text: str) -> str:
    """An address that links can begin with, without a slash at its end."""
    reason = ""
    try:
        parts = urlsplit(text)
        if not _VISIBLE.fullmatch(text):
            reason = "it has characters that no address has"
        elif parts.scheme not in ("http", "https"):
            reason = "it must begin with http:// or https://"
        elif not parts.hostname or parts.port == 0:
            reason = "it must name a host"
        elif "@" in parts.netloc or "?" in text or "#" in text:
            reason = "it can have a path, and neither a user nor a query"
    except ValueError as error:
        reason = str(error)
    if reason:
        raise Invalid(f"--public-url cannot be {text!r}: {reason}.")
    return text.rstrip("/")
