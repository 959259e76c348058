"""An organisation to look at: cohorts, pools, subpools, users, workflows that run and that wait.

Made once; a server that is started again finds it as it was left. Must not know how it is stored.
"""

from __future__ import annotations

from bough.control import cohorts, people, pools, submission, subpools
from bough.control.access import introduce
from bough.control.site import Site
from bough.control.specs import read_spec
from bough.model.access import Actor
from bough.model.workflow import Priority

#: As many as the example needs to be full.
GPUS = 64

#: Commands that show it.
TRIED = ("pool list", "workflow list --all-users", "workflow why tracker-1")

_COHORTS = {
    "research": {"description": "Models that do not exist yet"},
    "products": {"description": "What customers use", "lending_limit": 16},
}
_POOLS = {
    "vision": (24, "research", "Cameras and video"),
    "language": (24, "research", "Text and speech"),
    "robots": (16, "products", "Everything that moves"),
}
_SUBPOOLS = {"vision": {"training": 12, "labels": 4}, "language": {"pretraining": 16}}
_USERS = {
    "ada": ("osmo-vision-admin", "osmo-vision-user"),
    "ben": ("osmo-vision-user",),
    "chi": ("osmo-language-user", "osmo-robots-user"),
}
#: Who submits what: name, GPUs, pool, priority.
_WORKFLOWS = (
    ("ada", "detector", 8, "vision--training", Priority.HIGH),
    ("ben", "segmenter", 4, "vision--training", Priority.NORMAL),
    ("ben", "tracker", 4, "vision--training", Priority.NORMAL),
    ("ada", "label-check", 2, "vision--labels", Priority.NORMAL),
    ("ben", "explore", 8, "vision", Priority.LOW),
    ("chi", "base-model", 16, "language--pretraining", Priority.HIGH),
    ("chi", "tune", 6, "language", Priority.NORMAL),
    ("chi", "tune-wide", 4, "language", Priority.NORMAL),
    ("chi", "walker", 8, "robots", Priority.NORMAL),
    ("chi", "sweep", 16, "robots", Priority.LOW),
)
#: A day and a half, so that it is still there when somebody comes back.
_SLEEP_S = 36 * 60 * 60


def make_example(site: Site) -> None:
    """Make the organisation, unless it is there."""
    admin = Actor("admin", (site.role_names.admin, site.role_names.everybody), origin="example")
    if any(each.name in _COHORTS for each in cohorts.list_cohorts(site, admin)):
        return
    _make_people(site, admin)
    for name, fields in _COHORTS.items():
        cohorts.create_cohort(site, admin, name, fields)
    configs = {
        name: {
            "description": description,
            "cohort": cohort,
            "resources": {"gpu": {"guarantee": quota, "maximum": -1, "weight": 1}},
        }
        for name, (quota, cohort, description) in _POOLS.items()
    }
    pools.put_pools(site, admin, configs)
    for pool, parts in _SUBPOOLS.items():
        for name, quota in parts.items():
            subpools.create_subpool(site, admin, pool, name, quota)
    for user, name, gpus, pool, priority in _WORKFLOWS:
        actor = introduce(site, user, _USERS[user], "example")
        submission.submit(site, actor, pool, read_spec(_spec(name, gpus)), priority)


def _make_people(site: Site, admin: Actor) -> None:
    known = {user.name for user in people.list_users(site, admin)}
    for name, roles in _USERS.items():
        if name not in known:
            people.create_user(site, admin, name, roles)


def _spec(name: str, gpus: int) -> str:
    """Tasks of up to four GPUs that start together."""
    size = max(each for each in (1, 2, 4) if gpus % each == 0)
    tasks = "\n".join(
        f"    - {{name: {name}-{number}, lead: {str(number == 0).lower()}, image: python:3.12, "
        f'command: [sleep, "{_SLEEP_S}"]}}'
        for number in range(gpus // size)
    )
    return (
        f"workflow:\n  name: {name}\n"
        f"  resources:\n    default: {{gpu: {size}, cpu: 4, memory: 16Gi, storage: 10Gi}}\n"
        f"  groups:\n  - name: {name}\n    tasks:\n{tasks}\n"
    )
