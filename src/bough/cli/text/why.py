"""Why a workflow waits, as text, and when it was preempted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bough.cli.file_commands import tool
from bough.cli.output import printable, some_of
from bough.cli.text.certificates import ExplainedCertificate, render_certificate
from bough.cli.times import show_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bough.api.why import WhyAnswer, WhyGroup, WhyRunning
    from bough.api.workflows import GroupDocument

#: How many groups are named that wait for the same reason.
MAXIMUM_NAMED = 3


def render_why(name: str, answer: WhyAnswer, *, queues: bool = False) -> str:
    """Why each waiting group waits, in the names of pools or of queues; then what runs."""
    running = answer.running
    if not answer.groups:
        message = answer.message or f"Workflow {name} does not wait."
        parts = [*message.splitlines(), *_runs_lines(running, told=True)]
        return "\n".join(map(printable, parts))
    title = "Queue" if queues else "Pool"
    parts = [_group_text(group, title) for group in answer.groups]
    if running:
        parts.append("\n".join(map(printable, _runs_lines(running, told=False))))
    return "\n\n".join(parts)


def preemption_lines(group: WhyGroup | WhyRunning | GroupDocument) -> list[str]:
    """The last time that a group had to end for others, and how often it had to before."""
    found = group.preemptions
    if not found:
        return []
    last = found[-1]
    what = "gave back tasks" if last.given_back else "was preempted"
    before = f" ({len(found)} times in all)" if len(found) > 1 else ""
    return [f"  it {what} at {show_time(last.at)}{before}: {last.message}"]


def _group_text(group: WhyGroup, title: str) -> str:
    preempted = [printable(line) for line in preemption_lines(group)]
    if group.certificate is None:
        reason = group.reason or group.status
        message = group.message or "it has not been looked at yet"
        text = f"{_who_waits(group, group.group)} waits ({reason}): {printable(message)}"
    else:
        shown = ExplainedCertificate(group.certificate, group.remedies)
        text = render_certificate(shown, _write, queue=title)
        name = printable(group.certificate.workload)
        text = _who_waits(group, name) + text.removeprefix(name)
    return "\n".join([text, *([""] if preempted else []), *preempted])


def _write(resource: str, amount: int) -> str:
    """Most wait for GPUs: what it takes to write other amounts is read only for these."""
    return (
        str(amount) if resource == "gpu" else tool("file_problems").write_amount(resource, amount)
    )


def _who_waits(group: WhyGroup, name: str) -> str:
    """The group; where others wait as it does, all of them as one."""
    alike = group.alike
    if not alike:
        return printable(name)
    names = some_of([group.group, *alike], MAXIMUM_NAMED)
    return printable(f"each of {1 + len(alike)} groups alike ({names})")


def _runs_lines(running: Sequence[WhyRunning], *, told: bool) -> list[str]:
    """What runs, unless that was told already, and when it had to end for others before."""
    lines: list[str] = []
    for each in running:
        lines += [] if told else [each.message]
        lines += preemption_lines(each)
    return lines
