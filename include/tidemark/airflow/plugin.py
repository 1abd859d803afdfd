"""What Airflow shows of Tidemark beside the DAGs, and takes from plugins only.

A page in the navigation, a tab on DAGs, a button on gate tasks; and the timetables of its DAGs. A scheduler that loads
the plugin has imported what its task processes need, which it forks.
"""

from airflow.plugins_manager import AirflowPlugin

from tidemark.airflow import task_imports
from tidemark.airflow.links import PREFIX, DataDocsLink
from tidemark.airflow.timetable import CollectionTimetable, InputsTimetable
from tidemark.airflow.web.lazy import LazyApp


class TidemarkPlugin(AirflowPlugin):
    """Read-only: whatever changes a collection is a task of a DAG."""

    name = "tidemark"
    imported = task_imports.MODULES
    fastapi_apps = [{"name": "Tidemark", "app": LazyApp(), "url_prefix": PREFIX}]  # noqa: RUF012
    external_views = [  # noqa: RUF012
        {"name": "Tidemark", "href": f"{PREFIX}/", "destination": "nav", "url_route": "tidemark"},
        {
            "name": "Tidemark",
            "href": f"{PREFIX}/collections/{{DAG_ID}}",
            "destination": "dag",
            "url_route": "tidemark-collection",
        },
    ]
    operator_extra_links = [DataDocsLink()]  # noqa: RUF012
    timetables = [CollectionTimetable, InputsTimetable]  # noqa: RUF012
