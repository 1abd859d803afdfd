"""The plugin's pages, asked what nobody would: whatever stands in an address, they answer, or refuse and say why.

Schemathesis makes the requests from the routes as FastAPI describes them; here the app has a schema, which the one that
is served has not.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import schemathesis
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from tests.dags.test_calendar import read
from tests.dags.test_web import STRICT
from tests.support.budget import budget

NAMES = st.sampled_from(["orders", "rows", "hours", "nobody"]) | st.text(max_size=40)
"""Of collections: some there are, so that more than the first check is reached."""
FEW = settings(
    max_examples=budget(ci=6, deep=25),
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def test_whatever_stands_in_an_address_is_answered(client: Any, orders: Any, hours: Any) -> None:
    read(orders, 1, 1)
    schema = schemathesis.openapi.from_dict(client.app.openapi())
    asked: dict[str, set[int]] = {}

    def ask(operation: Any) -> None:
        @FEW
        @_given(operation)
        def check(case: Any, name: str) -> None:
            path = _path(operation.path, {**(case.path_parameters or {}), "dag_id": name})
            answer = client.get(path, params=_params(case))
            asked.setdefault(operation.path, set()).add(answer.status_code)
            assert answer.status_code in (200, 401, 403, 404, 405, 422), (path, case.query, answer.text)
            assert {header: answer.headers[header] for header in STRICT} == STRICT

        check()

    for found in schema.get_all_operations():
        ask(found.ok())
    assert set(asked) == {route.path for route in client.app.routes}
    assert {path for path, codes in asked.items() if 200 in codes} >= {"/", "/collections/{dag_id}"}


def _given(operation: Any) -> Any:
    from hypothesis import given

    return given(case=operation.as_strategy(), name=NAMES)


def _path(route: str, parameters: dict[str, Any]) -> str:
    """The address of a route, with whatever stands in it as browsers write it."""
    return re.sub(r"{(\w+)}", lambda of: quote(str(parameters[of[1]]), safe="", errors="replace"), route)


def _params(case: Any) -> dict[str, Any]:
    """The query, without what no address can hold."""
    query = case.query or {}
    return {name: value for name, value in query.items() if "\ud800" not in str(value)}
