"""What Airflow asks an installed package for: the decorator `@task.tidemark`.

Airflow looks for it among the entry points of installed packages, and there for the plugin, too (`airflow.plugins`): it
takes plugins of providers only where `core.lazy_discover_providers` is off, and would then find it twice. A folder
that is only on Python's path, as in this project, has no entry points: there `with_changes` and `with_as_of` are the
same, and plugins/tidemark_plugin.py has the plugin.
"""

from __future__ import annotations

from typing import Any


def get_provider_info() -> dict[str, Any]:
    """The entry point `apache_airflow_provider` of pyproject.toml."""
    return {
        "package-name": "tidemark",
        "name": "Tidemark",
        "description": "Keeps a changing dataset exact.",
        "task-decorators": [{"name": "tidemark", "class-name": "tidemark.airflow.handed.tidemark_task"}],
    }
