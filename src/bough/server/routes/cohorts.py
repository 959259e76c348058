"""Cohorts: the organisation above the pools."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar.params import FromPath, FromQuery, JSONBody

from bough.control import cohorts
from bough.control.cohorts import CohortChange
from bough.model.access import Action
from bough.model.pool import PoolCohort
from bough.server.routes.declare import Visit, caller, route
from bough.server.shapes import CohortAnswer, CreateCohort

_ALL = "/api/configs/cohort"
_ONE = "/api/configs/cohort/{cohort:str}"


@route("GET", _ALL, Action.COHORT_READ)
def list_cohorts(request: Visit) -> list[PoolCohort]:
    """All cohorts, by name."""
    site, actor = caller(request)
    return cohorts.list_cohorts(site, actor)


@route("POST", _ALL, Action.COHORT_UPDATE, status=201)
def create_cohort(
    request: Visit, data: JSONBody[CreateCohort], plan: FromQuery[bool] = False
) -> CohortAnswer:
    """Declare a cohort that is not there yet; with `plan`, only say what that would do."""
    site, actor = caller(request)
    fields = msgspec.to_builtins(data)
    name = fields.pop("name")
    return _answer(cohorts.create_cohort(site, actor, name, fields, plan=plan))


@route("GET", _ONE, Action.COHORT_READ)
def get_cohort(request: Visit, cohort: FromPath[str]) -> PoolCohort:
    """One cohort."""
    site, actor = caller(request)
    return cohorts.get_cohort(site, actor, cohort)


@route("PATCH", _ONE, Action.COHORT_UPDATE)
def update_cohort(
    request: Visit,
    cohort: FromPath[str],
    data: JSONBody[dict[str, Any]],
    plan: FromQuery[bool] = False,
) -> CohortAnswer:
    """Change some fields; its parent is one of them."""
    site, actor = caller(request)
    return _answer(cohorts.update_cohort(site, actor, cohort, data, plan=plan))


@route("DELETE", _ONE, Action.COHORT_UPDATE)
def delete_cohort(
    request: Visit, cohort: FromPath[str], plan: FromQuery[bool] = False
) -> CohortAnswer:
    """Take the declaration back at once, whoever names it."""
    site, actor = caller(request)
    return _answer(cohorts.delete_cohort(site, actor, cohort, plan=plan))


def _answer(change: CohortChange) -> CohortAnswer:
    return CohortAnswer(
        cohort=msgspec.to_builtins(change.cohort),
        planned=change.planned,
        effects=msgspec.to_builtins(change.effects),
    )


HANDLERS = (list_cohorts, create_cohort, get_cohort, update_cohort, delete_cohort)
