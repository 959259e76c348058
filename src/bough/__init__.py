"""Bough: hierarchical GPU quota and elastic gang scheduling that can say why.

Nothing is imported here before it is asked for, so that the command line starts fast.

    model              types: nodes, queues, gangs, workflows, snapshots, plans
    core               decides: quota, gangs, placement, one cycle, explanations; pure
    formats            YAML of Kueue, KAI, workflows and policies into types, and back
    store              tables and queries, on SQLite or PostgreSQL
    control            use cases, and the scheduler's loop
    backends           what runs tasks: processes of this machine, pods of a cluster
    object_stores      object stores, as URLs name them
    server             HTTP over the use cases; where everything is put together
    api                requests and answers of the server, for all sides
    client             the Python client
    websocket          websockets, for both ends of a session with a task
    tools              commands on files
    cli                the command line
    kube               the client of an apiserver, and objects of Kubernetes
    pod_scheduler      `bough kube schedule`
    pod_grouper        `bough kube group`
    kube_webhook       `bough kube webhook`
    durable_files      files that are whole or not there
    data_folder_names  names of the files in a server's data folder, and how one is recognised
    pipes              pipes that hold more than usual
    sealed_lines       files of lines with a checksum: backups and exported histories
    errors             all errors, by whose fault they are
    version            the version of the program

docs/architecture.md draws how they work together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bough.client import Client

__all__ = ["Client"]


def __getattr__(name: str) -> object:
    if name != "Client":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from bough.client import Client  # noqa: PLC0415  only on request

    return Client
