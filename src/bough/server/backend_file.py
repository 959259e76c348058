"""Which backends a server has, by their names: one by `--backend`, or several by `--backends FILE`.

    backends:
    - {name: default, kind: local}
    - {name: lab, kind: virtual, options: {gpus: 64}}
    - {name: east, kind: kubernetes, options: {context: east, namespace: bough, decider: kai}}

Pools say by `backend` which of them runs their workflows.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bough.errors import Invalid
from bough.formats.yaml.documents import read_file
from bough.model.backend import BackendAbilities
from bough.model.names import plain_name_fault
from bough.model.words import suggest
from bough.server.settings import Settings

if TYPE_CHECKING:
    from bough.backends.local.images.image_folder import ImageFolder

LOCAL = "local"
VIRTUAL = "virtual"
KUBERNETES = "kubernetes"
KINDS = (LOCAL, VIRTUAL, KUBERNETES)
#: Of the backend kubernetes: which scheduler decides where pods run.
BOUGH = "bough"
KAI = "kai"
DECIDERS = (BOUGH, KAI)
#: The name of a single backend, to which pools refer by default.
DEFAULT = "default"
_CLAIM = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class VirtualSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of a virtual backend."""

    gpus: int | None = None
    #: A file with Nodes, instead of a number of GPUs.
    nodes: Path | None = None


class LocalSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The local backend has no options here: those of the command are its settings."""


class KubernetesSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a cluster is reached, and what is made in it."""

    #: As kubectl finds it, if it is not said.
    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str = "bough"
    #: After how many seconds a task that does not start is given up.
    start_timeout: int = 1_800
    #: A claim that all nodes can mount, for data between tasks; and an image with a shell.
    volume: str | None = None
    volume_image: str | None = None
    #: Which scheduler decides where pods run: `bough` or `kai`.
    decider: str = BOUGH


_Options = VirtualSettings | LocalSettings | KubernetesSettings
#: The type of `options`, by kind.
_SHAPES: dict[str, type[_Options]] = {
    LOCAL: LocalSettings,
    VIRTUAL: VirtualSettings,
    KUBERNETES: KubernetesSettings,
}
#: What a Secret of Kubernetes can hold.
_SECRET_BYTES = 1 << 20


class BackendSettings(msgspec.Struct, frozen=True):
    """One backend."""

    name: str
    kind: str
    options: _Options

    def abilities(self, settings: Settings) -> BackendAbilities:
        """What it can do for tasks, as far as a submitter must know."""
        options = self.options
        if self.kind == KUBERNETES:
            return BackendAbilities(
                needs_images=True,
                keeps_data=isinstance(options, KubernetesSettings) and options.volume is not None,
                only_results=True,
                makes_pods=True,
                places_tasks=not (
                    isinstance(options, KubernetesSettings) and options.decider == KAI
                ),
                absolute_files=True,
                file_bytes=_SECRET_BYTES,
            )
        if self.kind != LOCAL:
            return BackendAbilities()
        images = _images(settings)
        return BackendAbilities(
            runs_images=settings.container_runner is not None or images is not None,
            image_fault=None if images is None else images.fault,
            images_have_commands=images is None,
            opens_stores=True,
            store_endpoints=settings.store_endpoints,
            bounds_tasks=True,
            runs_commands=True,
            keeps_pool_data=True,
        )


def _images(settings: Settings) -> ImageFolder | None:
    """The images of a folder, if the server has one."""
    if settings.image_folder is None:
        return None
    # Only here, as others start without what runs tasks.
    from bough.backends.local.images.image_folder import ImageFolder  # noqa: PLC0415
    from bough.backends.local.options import LocalOptions  # noqa: PLC0415

    options = LocalOptions(settings.task_folder, image_folder=settings.image_folder).resolved()
    return ImageFolder(settings.image_folder.resolve(), options.unpacked_images)


def chosen_backends(settings: Settings) -> tuple[BackendSettings, ...]:
    """The backends of a server."""
    if settings.backends is not None:
        return _read(settings.backends)
    kind = _check_kind("--backend", settings.backend)
    if kind == LOCAL:
        return (BackendSettings(DEFAULT, kind, LocalSettings()),)
    if kind == KUBERNETES:
        options = KubernetesSettings(
            settings.kubeconfig,
            settings.context,
            settings.kube_namespace,
            volume=settings.kube_volume,
            volume_image=settings.kube_volume_image,
            decider=settings.kube_decider,
        )
        return (BackendSettings(DEFAULT, kind, _check_cluster("--kube-", options)),)
    return (BackendSettings(DEFAULT, kind, VirtualSettings(settings.gpus, settings.nodes)),)


def has_local(settings: Settings) -> bool:
    """Whether tasks run on this machine."""
    return any(each.kind == LOCAL for each in chosen_backends(settings))


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    kind: str
    options: dict[str, object] = {}


class _BackendsFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    backends: tuple[_Entry, ...]


def _read(path: Path) -> tuple[BackendSettings, ...]:
    documents = read_file(str(path))
    if len(documents) != 1:
        raise Invalid(f"{path}: one document with backends is expected, not {len(documents)}.")
    try:
        file = msgspec.convert(documents[0].value, _BackendsFile)
    except msgspec.ValidationError as error:
        raise Invalid(f"{path}: {error}.") from None
    if not file.backends:
        raise Invalid(f"{path}: backends: at least one is needed.")
    found = tuple(_backend(path, number, each) for number, each in enumerate(file.backends))
    names = [each.name for each in found]
    for name in names:
        if names.count(name) > 1:
            raise Invalid(f"{path}: backends: there are several of the name {name}.")
    if sum(each.kind == LOCAL for each in found) > 1:
        raise Invalid(f"{path}: backends: only one can be {LOCAL}, as there is one machine.")
    return found


def _backend(path: Path, number: int, entry: _Entry) -> BackendSettings:
    where = f"{path}: backends[{number}]"
    fault = plain_name_fault(f"{where}.name", entry.name)
    if fault is not None:
        raise Invalid(fault)
    kind = _check_kind(f"{where}.kind", entry.kind)
    try:
        options = msgspec.convert(entry.options, _SHAPES[kind], dec_hook=_path)
    except msgspec.ValidationError as error:
        raise Invalid(f"{where}.options: {error}.") from None
    if isinstance(options, VirtualSettings):
        if options.gpus is not None and options.gpus < 0:
            raise Invalid(f"{where}.options.gpus: {options.gpus} must not be less than 0.")
        if options.nodes is not None:
            # Paths in the file are relative to its folder.
            nodes = path.parent / options.nodes
            options = msgspec.structs.replace(options, nodes=nodes)
    elif isinstance(options, KubernetesSettings):
        if options.kubeconfig is not None:
            kubeconfig = path.parent / options.kubeconfig
            options = msgspec.structs.replace(options, kubeconfig=kubeconfig)
        options = _check_cluster(f"{where}.options.", options)
    return BackendSettings(entry.name, kind, options)


def _check_cluster(where: str, options: KubernetesSettings) -> KubernetesSettings:
    if not _NAMESPACE.fullmatch(options.namespace):
        raise Invalid(
            f"{where}namespace: {options.namespace[:80]!r} cannot be the name of a namespace."
        )
    if options.volume is not None and not _CLAIM.fullmatch(options.volume):
        raise Invalid(f"{where}volume: {options.volume[:80]!r} cannot be the name of a claim.")
    if options.volume_image is not None and not options.volume_image.strip():
        raise Invalid(f"{where}volume_image: it is empty; it names an image with a shell.")
    if options.decider not in DECIDERS:
        hint = suggest(options.decider, list(DECIDERS))
        raise Invalid(
            f"{where}decider: {options.decider[:80]!r} decides nothing; there are: "
            f"{', '.join(DECIDERS)}{hint}."
        )
    if options.start_timeout < 1:
        raise Invalid(f"{where}start_timeout: {options.start_timeout} must be at least 1.")
    return options


def _path(kind: type, value: object) -> Path:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise NotImplementedError


def _check_kind(where: str, kind: str) -> str:
    if kind not in KINDS:
        hint = suggest(kind, list(KINDS))
        raise Invalid(
            f"{where}: there is no backend {kind!r}; there are: {', '.join(KINDS)}{hint}."
        )
    return kind
