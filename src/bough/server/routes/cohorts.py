"""Cohorts: the organisation above the pools."""

from __future__ import annotations

import msgspec
from litestar.params import FromPath, FromQuery, JSONBody

from bough.api.common import Json
from bough.api.pools import CohortAnswer, CohortConfig, CreateCohort, NodeDebt, TreeEffects
from bough.control.pools import cohorts
from bough.control.pools.cohorts import CohortChange
from bough.control.pools.quota_effects import Debt
from bough.model.access import Action
from bough.model.pool import PoolCohort
from bough.server.route_declaration import Visit, caller, route

_ALL = "/api/configs/cohort"
_ONE = "/api/configs/cohort/{cohort:str}"


@route("GET", _ALL, Action.COHORT_READ)
def list_cohorts(request: Visit) -> list[CohortConfig]:
    """All cohorts, by name."""
    site, actor = caller(request)
    return [_config(each) for each in cohorts.list_cohorts(site, actor)]


@route("POST", _ALL, Action.COHORT_UPDATE, status=201)
def create_cohort(
    request: Visit, data: JSONBody[CreateCohort], plan: FromQuery[bool] = False
) -> CohortAnswer:
    """Create a cohort; with `plan`, only show what that would do."""
    site, actor = caller(request)
    fields = msgspec.to_builtins(data)
    name = fields.pop("name")
    return _answer(cohorts.create_cohort(site, actor, name, fields, plan=plan))


@route("GET", _ONE, Action.COHORT_READ)
def get_cohort(request: Visit, cohort: FromPath[str]) -> CohortConfig:
    """One cohort."""
    site, actor = caller(request)
    return _config(cohorts.get_cohort(site, actor, cohort))


@route("PATCH", _ONE, Action.COHORT_UPDATE)
def update_cohort(
    request: Visit,
    cohort: FromPath[str],
    data: JSONBody[dict[str, Json]],
    plan: FromQuery[bool] = False,
) -> CohortAnswer:
    """Change some fields of a cohort, for example its parent."""
    site, actor = caller(request)
    return _answer(cohorts.update_cohort(site, actor, cohort, data, plan=plan))


@route("DELETE", _ONE, Action.COHORT_UPDATE)
def delete_cohort(
    request: Visit, cohort: FromPath[str], plan: FromQuery[bool] = False
) -> CohortAnswer:
    """Delete a cohort at once, even if pools or cohorts have it as their parent."""
    site, actor = caller(request)
    return _answer(cohorts.delete_cohort(site, actor, cohort, plan=plan))


def _answer(change: CohortChange) -> CohortAnswer:
    found = change.effects
    return CohortAnswer(
        cohort=None if change.cohort is None else _config(change.cohort),
        planned=change.planned,
        effects=TreeEffects(
            debts=[_debt(each) for each in found.debts],
            relieved=[_debt(each) for each in found.relieved],
            tangled=list(found.tangled),
            untangled=list(found.untangled),
            uncounted={},
        ),
    )


def _config(cohort: PoolCohort) -> CohortConfig:
    return CohortConfig(
        name=cohort.name,
        parent=cohort.parent,
        quota=cohort.quota,
        borrowing_limit=cohort.borrowing_limit,
        lending_limit=cohort.lending_limit,
        weight=cohort.weight,
        description=cohort.description,
    )


def _debt(debt: Debt) -> NodeDebt:
    return NodeDebt(debt.node, debt.flavor_resource, debt.before, debt.after)


HANDLERS = (list_cohorts, create_cohort, get_cohort, update_cohort, delete_cohort)
