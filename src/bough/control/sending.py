"""What is sent as a workflow, or was before, into a spec: rendered, read, and with additions.

Must not know how a spec is written, nor whether a pool takes it.
"""

from __future__ import annotations

import msgspec

from bough.control.rendering import Rendered, render
from bough.control.settings import read_workflow_settings
from bough.control.site import Site
from bough.control.specs import image_warnings, read_spec, with_environment, with_environment_of
from bough.control.workflows import get_spec, get_workflow
from bough.model.access import Actor
from bough.model.workflow import WorkflowSpec


class Sent(msgspec.Struct, frozen=True):
    """A workflow as it is sent."""

    text: str
    #: `name=value`, typed as YAML types them, and always text.
    variables: tuple[str, ...] = ()
    strings: tuple[str, ...] = ()
    #: What the text was rendered from before it was sent; it is not rendered again then.
    template: str | None = None


class Additions(msgspec.Struct, frozen=True):
    """What a submission adds to the workflow's own."""

    labels: dict[str, str] = {}
    environment: dict[str, str] = {}


def read_sent(site: Site, sent: Sent, more: Additions, *, uploading: bool = False) -> WorkflowSpec:
    """Read what is sent; a template is rendered first.

    Uploading, files may still be on the machine of the one who submits.
    """
    if sent.template is None:
        rendered = render(sent.text, sent.variables, sent.strings)
    else:
        rendered = Rendered(sent.text, sent.template)
    spec = _read(site, rendered, more.labels, uploading=uploading)
    return with_environment(spec, more.environment)


def read_again(site: Site, actor: Actor, workflow_id: str, more: Additions) -> WorkflowSpec:
    """Read a workflow that was submitted before, with all that was added to it then."""
    earlier = get_workflow(site, actor, workflow_id)
    text = get_spec(site, actor, workflow_id)
    template = get_spec(site, actor, workflow_id, template=True)
    labels = {**earlier.workflow.labels, **more.labels}
    rendered = Rendered(text, None if template == text else template)
    spec = _read(site, rendered, labels, uploading=False)
    spec = with_environment_of(spec, (group.spec for group in earlier.groups))
    return with_environment(spec, more.environment)


def _read(
    site: Site, rendered: Rendered, labels: dict[str, str], *, uploading: bool
) -> WorkflowSpec:
    with site.store.read() as connection:
        settings = read_workflow_settings(connection)
    spec = read_spec(
        rendered.text,
        labels,
        template=rendered.template,
        maximum_tasks=settings.max_num_tasks,
        uploading=uploading,
    )
    images = image_warnings(spec, runs_images=site.runs_images)
    warnings = (*rendered.warnings, *spec.warnings, *images)
    return msgspec.structs.replace(spec, warnings=warnings)
