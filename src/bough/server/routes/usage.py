"""What was used: GPU-hours of pools and users."""

from __future__ import annotations

from litestar.params import FromQuery

from bough.api.nodes import UsageLine, UsageReport
from bough.control.records import usage
from bough.control.records.usage import By, GpuHours
from bough.model.access import Action
from bough.server.route_declaration import Visit, caller, route
from bough.server.values import read_moment_ms, time_text


@route("GET", "/api/usage", Action.RESOURCE_LIST)
def get_usage(
    request: Visit,
    since: FromQuery[str] = "7d",
    until: FromQuery[str | None] = None,
    by: FromQuery[By] = By.POOL,
) -> UsageReport:
    """GPU-hours by pool or by user, since a time or over the last days or hours."""
    site, actor = caller(request)
    now_ms = site.clock.now_ms()
    since_ms = read_moment_ms("since", since, now_ms)
    until_ms = None if until is None else read_moment_ms("until", until, now_ms)
    report = usage.get_usage(site, actor, since_ms, until_ms, by)
    return UsageReport(
        since=time_text(report.since_ms) or "",
        until=time_text(report.until_ms) or "",
        by=report.by.value,
        rows=[_line(each) for each in report.rows],
        total=_line(report.total),
    )


def _line(use: GpuHours) -> UsageLine:
    return UsageLine(use.name, *use.hours)


HANDLERS = (get_usage,)
