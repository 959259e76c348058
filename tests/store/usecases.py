"""The use cases that the stories tell of: the one list to change when a module moves.

What only tests of the machinery itself need (tables, migrations, snapshots) they import themselves.
"""

from __future__ import annotations

from bough.backends.virtual import VirtualBackend
from bough.control.change_recording import Note
from bough.control.config import policy, settings
from bough.control.config.policy import Written
from bough.control.nodes import node_cordon, node_list, node_sync
from bough.control.people import access, credentials, pass_key, profiles, tokens, users
from bough.control.people.access import authenticate
from bough.control.pools import cohorts, pools, quotas, subpool_drain, subpools
from bough.control.records import change_history
from bough.control.records.event_stream import Recent
from bough.control.records.usage import HOUR_MS, By, get_usage
from bough.control.scheduling import timeouts
from bough.control.scheduling.explanation import Explainer
from bough.control.scheduling.live_plan import LivePlan
from bough.control.scheduling.loop import Bell, Scheduler
from bough.control.site import Site
from bough.control.startup import start
from bough.control.workflows import (
    archive,
    cancelling,
    history_export,
    observations,
    query,
    task_list,
)
from bough.control.workflows.query import get_workflow
from bough.control.workflows.restarting import restart
from bough.control.workflows.submission import SubmitMode, submit
from bough.server.pool_documents import show_pool
from bough.store import Store, change_records, event_order
from bough.store import change_records as record_store
from bough.store import pools as pool_store
from bough.store import settings as setting_store
from bough.store import tasks as task_store
from bough.store.task_search import TaskFilter
from bough.store.workflows import Filter

__all__ = [
    "HOUR_MS",
    "Bell",
    "By",
    "Explainer",
    "Filter",
    "Note",
    "Recent",
    "Scheduler",
    "Site",
    "Store",
    "SubmitMode",
    "TaskFilter",
    "VirtualBackend",
    "Written",
    "access",
    "archive",
    "authenticate",
    "cancelling",
    "change_history",
    "change_records",
    "cohorts",
    "credentials",
    "event_order",
    "get_usage",
    "get_workflow",
    "history_export",
    "new_explainer",
    "node_cordon",
    "node_list",
    "node_sync",
    "observations",
    "pass_key",
    "policy",
    "pool_store",
    "pools",
    "profiles",
    "query",
    "quotas",
    "record_store",
    "restart",
    "setting_store",
    "settings",
    "show_pool",
    "start",
    "submit",
    "subpool_drain",
    "subpools",
    "task_list",
    "task_store",
    "timeouts",
    "tokens",
    "users",
]


def new_explainer(site: Site) -> Explainer:
    """One that takes views for itself, where no loop does."""
    return Explainer(site, LivePlan(site).ask)
