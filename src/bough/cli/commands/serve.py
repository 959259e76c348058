"""`bough serve` and `bough db`: arguments of the server's commands."""

from __future__ import annotations

import gc
import importlib
import ipaddress
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from bough.cli.command import Command, CommandGroup
from bough.cli.options import format_option
from bough.cli.output import echo
from bough.errors import Invalid

_FILES = ("nodes", "backends", "policy", "kubeconfig", "notifications")

data_option = click.option(
    "--data",
    metavar="DIR",
    default=".bough",
    show_default=True,
    type=click.Path(file_okay=False),
    help="The folder for the database and the first administrator's token.",
)
database_option = click.option(
    "--database",
    metavar="URL",
    envvar="BOUGH_DATABASE",
    show_envvar=True,
    help="The database, like postgresql://user@host/name (default: a file in the data folder).",
)
key_file_option = click.option(
    "--key-file",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="The file with the key that encrypts credentials; servers that share a database need the "
    "same key (default: credential-key in the data folder).",
)


class _Serve(Command):
    """Its help ends with what requests may take of the memory."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, and then the table."""
        super().format_options(ctx, formatter)
        # Where the server is not installed there is nothing to say of it.
        with suppress(Invalid):
            rows = server("memory_budget").rows()
            with formatter.section("Memory for requests, at most"):
                formatter.write_dl(rows)


@click.command(cls=_Serve)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    default=8265,
    show_default=True,
    envvar="BOUGH_PORT",
    show_envvar=True,
    type=click.IntRange(0, 65535),
    help="The port to listen on; 0 picks a free one.",
)
@click.option(
    "--public-url",
    metavar="URL",
    help="The base URL of links to this server, like https://bough.example.org (default: the "
    "address it listens on).",
)
@data_option
@database_option
@key_file_option
@click.option(
    "--backend",
    type=click.Choice(["local", "virtual", "kubernetes"]),
    default="local",
    show_default=True,
    help="Run tasks as processes on this machine (local) or as pods (kubernetes), or do not run "
    "them and only let them hold GPUs (virtual).",
)
@click.option(
    "--kubeconfig",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="The kubeconfig of the backend kubernetes (default: the one that kubectl uses).",
)
@click.option(
    "--context", metavar="NAME", help="A context of the kubeconfig (default: its current one)."
)
@click.option(
    "--kube-namespace",
    metavar="NAME",
    default="bough",
    show_default=True,
    help="The Kubernetes namespace for pods.",
)
@click.option(
    "--kube-volume",
    metavar="CLAIM",
    help="A PersistentVolumeClaim that all nodes can mount, to pass data between tasks (default: "
    "no data is kept).",
)
@click.option(
    "--kube-volume-image",
    metavar="IMAGE",
    help="An image with a shell, to create and delete folders on the volume (default: busybox).",
)
@click.option(
    "--kube-decider",
    type=click.Choice(["bough", "kai"]),
    default="bough",
    show_default=True,
    help="Which scheduler places pods; with kai, Bough admits workflows and manages KAI's queues.",
)
@click.option(
    "--notifications",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="A file that enables notifications by e-mail and webhook, and lists allowed targets.",
)
@click.option(
    "--backends",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="A file with several backends, instead of --backend; each has a name, a kind and options.",
)
@click.option(
    "--gpus",
    type=click.IntRange(0, 1_000_000),
    help="GPUs to offer (default: those that nvidia-smi finds; 8 if it finds none).",
)
@click.option("--cpus", metavar="N", help="CPUs to offer (default: those of this machine).")
@click.option(
    "--memory", metavar="SIZE", help="Memory to offer, like 64Gi (default: this machine's)."
)
@click.option(
    "--storage", metavar="SIZE", help="Disk to offer, like 2Ti (default: this machine's)."
)
@click.option(
    "--nodes",
    metavar="FILE",
    type=click.Path(),
    help="A file with the Nodes to offer, instead of this machine.",
)
@click.option(
    "--policy",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="A policy file, or the name of a preset, that replaces the configured policy.",
)
@click.option(
    "--namespace", default="default", show_default=True, help="A part of every queue's name."
)
@click.option("--example", is_flag=True, help="Create an example organisation.")
@click.option(
    "--trust-proxy",
    "trusted",
    metavar="NETWORK",
    multiple=True,
    help="Trust x-osmo-user and x-osmo-roles in requests from this network, like 10.0.0.0/8. "
    "Repeatable.",
)
@click.option(
    "--workers",
    metavar="N",
    type=click.IntRange(1, 16),
    default=1,
    show_default=True,
    help="How many processes answer requests; use more than one if they keep one core busy.",
)
@click.option(
    "--connections",
    metavar="N",
    type=click.IntRange(32, 100_000),
    default=2_000,
    show_default=True,
    help="The most open connections, as far as the limit for open files allows.",
)
@click.option(
    "--connections-per-address",
    metavar="N",
    type=click.IntRange(1, 100_000),
    default=1_000,
    show_default=True,
    help="The most open connections from one address; addresses of --trust-proxy are exempt.",
)
@click.option(
    "--private/--not-private",
    default=True,
    show_default=True,
    help="Run each task in a sandbox, if the machine supports it: with its own /tmp, everything "
    "else read-only, and the server's data hidden.",
)
@click.option(
    "--task-network",
    type=click.Choice(["own", "none", "host"]),
    default="own",
    show_default=True,
    help="The network of a group of tasks: its own, which reaches other machines through "
    "slirp4netns, but not this one (own); the same without outside access (none); or this "
    "machine's (host).",
)
@click.option(
    "--as-user",
    is_flag=True,
    help="Run each task as the local user who submitted it; the server must run as root.",
)
@click.option(
    "--task-user",
    metavar="NAME",
    help="The local account that tasks run as if the server runs as root; created if missing. "
    "root: the server's own account (default: bough-task).",
)
@click.option(
    "--container-runner",
    metavar="PROGRAM",
    help="The program that runs tasks in their images, like docker (default: images are ignored).",
)
@click.option(
    "--image-folder",
    metavar="DIR",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Run tasks in images from this folder, without docker: image NAME is the root folder or "
    "the OCI archive DIR/NAME, read-only for tasks.",
)
@click.option(
    "--task-processes",
    metavar="N",
    type=click.IntRange(min=100),
    default=32_768,
    show_default=True,
    help="The most processes and threads of a task, if the machine can enforce it; at most a "
    "quarter of the machine's own limit.",
)
@click.option(
    "--keep-days",
    type=click.IntRange(0, 36_500),
    default=30,
    show_default=True,
    help="How many days to keep logs and results of finished tasks.",
)
@click.option(
    "--task-folder",
    "tasks",
    metavar="DIR",
    type=click.Path(file_okay=False, resolve_path=True, path_type=Path),
    help="The folder for the files of tasks, for example on another disk than the database; "
    "remembered for later starts (default: local in the data folder).",
)
@click.option(
    "--data-folder",
    "folders",
    metavar="DIR",
    multiple=True,
    type=click.Path(file_okay=False, exists=True, resolve_path=True),
    help="A folder that tasks can read and write through file:// URLs. Repeatable.",
)
@click.option(
    "--store-endpoint",
    "endpoints",
    metavar="URL",
    multiple=True,
    help="An object store that credentials of users may point to, like "
    "https://minio.example.com:9000; Amazon, Google and Azure are always allowed. Repeatable.",
)
def serve(
    data: str,
    public_url: str | None,
    key_file: str | None,
    trusted: tuple[str, ...],
    folders: tuple[str, ...],
    endpoints: tuple[str, ...],
    **options: Any,
) -> None:
    """Run a server: schedule workflows, answer requests.

    The first start writes a token for the first administrator to admin-token in the data folder.
    """
    files = {each: options.pop(each) for each in _FILES}
    sizes = {each: options.pop(each) for each in ("cpus", "memory", "storage")}
    for each in ("gpus", *sizes):
        if files["nodes"] is not None and (sizes | options)[each] is not None:
            raise click.UsageError(f"--{each} and --nodes cannot be used together.")
    if options["container_runner"] is not None and options["image_folder"] is not None:
        raise click.UsageError("--container-runner and --image-folder cannot be used together.")
    known = server("settings")
    settings = known.Settings(
        data=Path(data),
        public_url=None if public_url is None else known.check_public_url(public_url),
        key_file=None if key_file is None else Path(key_file),
        **{name: None if path is None else Path(path) for name, path in files.items()},
        trusted_proxies=tuple(map(_network, trusted)),
        data_folders=tuple(map(Path, folders)),
        store_endpoints=tuple(map(known.check_store_endpoint, endpoints)),
        cpu_milli=known.read_size("--cpus", "cpu", sizes["cpus"]),
        memory_bytes=known.read_size("--memory", "memory", sizes["memory"]),
        storage_bytes=known.read_size("--storage", "storage", sizes["storage"]),
        **options,
    )
    server("process").serve(settings)


@click.group(cls=CommandGroup)
def db() -> None:
    """A server's database."""


@db.command()
@data_option
@database_option
@format_option
def upgrade(data: str, database: str | None, format_type: str) -> None:
    """Migrate the database to this version. A server also does so when it starts."""
    settings = server("settings").Settings(data=Path(data), database=database)
    revision = server("process").upgrade_database(settings)
    answer = {"revision": revision}
    echo(answer, format_type, lambda _: f"The database has revision {revision}.")


def _network(text: str) -> Any:
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--trust-proxy") from None


def server(name: str) -> Any:
    """The module `bough.server.NAME`, imported when a command runs and not before."""
    # It stays; looking through it for what could be freed costs a sixth of the start.
    gc.disable()
    try:
        return importlib.import_module(f"bough.server.{name}")
    except ModuleNotFoundError as error:
        raise Invalid(
            f"The server needs {error.name}, which is not installed.",
            hint="install Bough with its server: pip install 'bough[server]'",
        ) from None
    finally:
        gc.freeze()
        gc.enable()
