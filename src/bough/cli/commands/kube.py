"""`bough kube`: arguments of the commands about arbitrary pods of a Kubernetes cluster."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bough.cli.command import Command, CommandGroup
from bough.cli.file_commands import tool
from bough.cli.options import format_option, read_text, together
from bough.cli.output import echo, printable
from bough.cli.screen import utc_option
from bough.cli.server_commands import client
from bough.cli.text.certificates import ExplainedCertificate, render_certificate
from bough.cli.text.cluster_drift import render_drift
from bough.cli.text.quota_tree import render_tree
from bough.errors import Invalid

if TYPE_CHECKING:
    from bough.api.kube_answers import KubeWhyAnswer, TreeExport
    from bough.api.quota_answers import QuotaTreeAnswer

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_name_option = click.option(
    "--scheduler-name",
    metavar="NAME",
    default="bough",
    show_default=True,
    help="The schedulerName of the pods to schedule.",
)
_namespace_option = click.option(
    "--lease-namespace",
    metavar="NAME",
    default="bough-system",
    show_default=True,
    help="The namespace of the scheduler's Lease.",
)
_group_option = click.option(
    "--group/--no-group",
    default=True,
    show_default=True,
    help="Create PodGroups for Jobs and other owners of pods.",
)
_quota_option = click.option(
    "--quota",
    type=click.Choice(["kai", "kueue"]),
    default="kai",
    show_default=True,
    help="Where quota comes from: KAI's Queues, or Kueue's Cohorts and ClusterQueues.",
)
_access_options = together(
    click.option(
        "--kubeconfig",
        metavar="FILE",
        type=click.Path(dir_okay=False),
        help="A kubeconfig file (default: the one that kubectl uses).",
    ),
    click.option(
        "--context",
        metavar="NAME",
        help="A context of the kubeconfig (default: its current context).",
    ),
)


@click.group(cls=CommandGroup)
def kube() -> None:
    """Pods of a Kubernetes cluster: schedule them, ask why they wait."""


@kube.command(cls=Command)
@_name_option
@click.option(
    "--policy",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="A policy file, or the name of a preset (default: kai or kueue, like --quota).",
)
@_access_options
@_namespace_option
@click.option(
    "--lease-duration",
    metavar="SECONDS",
    type=click.IntRange(3, 600),
    default=15,
    show_default=True,
    help="A standby scheduler takes over if the Lease is not renewed for this long.",
)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default=":8270",
    show_default=True,
    help="Address for /healthz, /readyz, /metrics, `bough kube why` and `bough kube queues`.",
)
@_group_option
@_quota_option
def schedule(**options: Any) -> None:
    """Schedule all pods of a cluster that name this scheduler.

    Gangs are KAI's PodGroups. Quota comes from KAI's Queues, or from Kueue's Cohorts and
    ClusterQueues, which pods select with the label kueue.x-k8s.io/queue-name. Jobs and other owners
    of pods get PodGroups; any other pod is a gang of one. If several schedulers have the same name,
    only the one that holds the Lease is active.
    """
    found = _module("scheduler")
    found.schedule(found.Options(**options))


@kube.command(cls=Command)
@_name_option
@_access_options
def group(**options: Any) -> None:
    """Create PodGroups for Jobs and other owners of pods.

    For Job, JobSet, LeaderWorkerSet, RayCluster, PyTorchJob and Grove's PodGang, through any number
    of owner references. This command schedules no pods; `bough kube schedule` creates the same
    PodGroups itself.
    """
    found = _module("command", "pod_grouper")
    found.group(found.Options(**options))


@kube.command(cls=Command)
@click.option(
    "--namespace",
    "-n",
    metavar="NAME",
    default="bough-system",
    show_default=True,
    help="The namespace of the scheduler.",
)
@_name_option
@click.option("--image", metavar="IMAGE", help="The scheduler's image (default: bough:VERSION).")
@_group_option
@_quota_option
@click.option(
    "--definitions/--no-definitions",
    default=True,
    show_default=True,
    help="Also print the CRDs of PodGroup, Queue and Topology.",
)
@click.option(
    "--webhook-ca",
    metavar="FILE",
    help="Also print the webhook, with this CA certificate; the webhook's own certificate comes "
    "from the Secret bough-webhook-tls.",
)
@format_option
def install(
    namespace: str,
    scheduler_name: str,
    image: str | None,
    webhook_ca: str | None,
    format_type: str,
    **chosen: Any,
) -> None:
    """Print the manifests that install the scheduler in a cluster.

    As YAML for `kubectl apply -f -`, or as one List in JSON. If the cluster already has KAI's
    CRDs, use --no-definitions.
    """
    named = {} if image is None else {"image": image}
    found = _module("install")
    objects = found.install_objects(
        namespace,
        scheduler_name,
        **named,
        with_definitions=chosen["definitions"],
        group=chosen["group"],
        quota=chosen["quota"],
    )
    if webhook_ca is not None:
        text = read_text(webhook_ca)
        if "-----BEGIN CERTIFICATE-----" not in text:
            raise Invalid(f"--webhook-ca: {webhook_ca} is not a PEM certificate.")
        which = image or found.IMAGE
        objects += _module("install", "kube_webhook").webhook_objects(
            namespace, which, text.encode()
        )
    listed = {"apiVersion": "v1", "kind": "List", "items": objects}
    echo(listed, format_type, lambda _: found.write_objects(objects))


@kube.command(cls=Command)
@click.option(
    "--tls-cert", metavar="FILE", required=True, help="The certificate of the webhook, as PEM."
)
@click.option("--tls-key", metavar="FILE", required=True, help="Its private key, as PEM.")
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default=":8443",
    show_default=True,
    help="Address for POST /validate and GET /healthz, both over TLS.",
)
@_access_options
def webhook(**options: Any) -> None:
    """Run the webhook that checks objects before they are stored.

    Checks PodGroups, Queues, Topologies, Cohorts and ClusterQueues like `bough gang check` and
    `bough quota check`, and that pods name a subgroup of their gang. Renewed certificates
    are loaded without a restart. The ValidatingWebhookConfiguration is printed by
    `bough kube install --webhook-ca FILE`.
    """
    found = _module("serving", "kube_webhook")
    found.serve(found.Options(**options))


@kube.command(cls=Command)
@click.argument("subject", metavar="pod/NAME|podgroup/NAME")
@click.option(
    "--namespace",
    "-n",
    metavar="NAME",
    help="The namespace of the pod or PodGroup (default: the context's).",
)
@_access_options
@_name_option
@_namespace_option
@format_option
def why(
    subject: str,
    namespace: str | None,
    kubeconfig: str | None,
    context: str | None,
    scheduler_name: str,
    lease_namespace: str,
    format_type: str,
) -> None:
    """Explain why a pod or a PodGroup waits. Asks the active scheduler."""
    kind, slash, name = subject.partition("/")
    if not slash or kind not in ("pod", "podgroup") or not name:
        raise click.UsageError(f"{subject!r} must be pod/NAME or podgroup/NAME.")
    asking = _module("scheduler_client").SchedulerQuestions(
        kubeconfig, context, scheduler_name, lease_namespace
    )
    answer: KubeWhyAnswer = asking.why(kind, name, namespace)
    echo(answer, format_type, _render_why)


@kube.command(cls=Command)
@_access_options
@_name_option
@_namespace_option
@format_option
def queues(
    kubeconfig: str | None,
    context: str | None,
    scheduler_name: str,
    lease_namespace: str,
    format_type: str,
) -> None:
    """Show the tree of queues with quota and usage. Asks the active scheduler."""
    asking = _module("scheduler_client").SchedulerQuestions(
        kubeconfig, context, scheduler_name, lease_namespace
    )
    answer: QuotaTreeAnswer = asking.queues()
    write = tool("file_problems").write_amount
    echo(answer, format_type, lambda found: render_tree(found, write))


@kube.command(cls=Command)
@utc_option
@format_option
def drift(format_type: str) -> None:
    """Show changes by others to queues that Bough keeps in clusters. Asks the server.

    The server repairs objects that were changed or deleted. Lists the latest repairs, and what
    cannot be repaired: foreign objects with the same names, and queues that are still in use.
    """
    echo(client().audit.drift(), format_type, render_drift)


@kube.command(cls=Command)
@click.argument("system", type=click.Choice(["kueue", "kai"]))
@click.option(
    "--namespace",
    "-n",
    metavar="NAME",
    default="default",
    show_default=True,
    help="The namespace of Kueue's LocalQueues.",
)
@format_option
def export(system: str, namespace: str, format_type: str) -> None:
    """Print pools, subpools and cohorts as objects of Kueue or KAI. Asks the server.

    As YAML for `kubectl apply -f -`, `bough plan` or `bough quota show`, or as one List in JSON.
    Comments at the top, or the field `warnings` of the List, name what the objects cannot express.
    """
    answer = client().queues.export(system, namespace)
    listed = {
        "apiVersion": "v1",
        "kind": "List",
        "items": answer.objects,
        "warnings": answer.warnings,
    }
    echo(listed, format_type, lambda _: _render_export(answer))


def _render_export(answer: TreeExport) -> str:
    warnings = [f"# warning: {printable(each)}" for each in answer.warnings]
    return "\n".join([*warnings, _module("install").write_objects(answer.objects)])


def _render_why(answer: KubeWhyAnswer) -> str:
    write = tool("file_problems").write_amount
    if answer.certificate is None:
        return f"{answer.subject}: {answer.sentence}"
    text = render_certificate(ExplainedCertificate(answer.certificate), write)
    return "\n\n".join([text, *answer.notes])


def _module(name: str, package: str = "pod_scheduler") -> Any:
    """Import the module `bough.PACKAGE.NAME` when a command runs, not before."""
    return importlib.import_module(f"bough.{package}.{name}")
