"""What browsers may do with the plugin's answers: as good as nothing.

Pages show values of source files, which anyone may have written. They are escaped; should one slip through all the
same, it finds no script, no style, no form, no base and no way to send the browser elsewhere.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Awaitable, Callable, MutableMapping
from hashlib import sha256
from typing import Any

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]

_NOTHING = "default-src 'none'; base-uri 'none'; form-action 'none'"
_FRAMES = "frame-ancestors 'self'"
"""Airflow shows the plugin's pages within its own."""

ANSWER = f"{_NOTHING}; {_FRAMES}; sandbox"
"""Of JSON, errors and whatever is no page."""

HEADERS = {
    "Content-Security-Policy": ANSWER,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}

_ENCODED = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]


def page(
    style: str,
    *,
    live: bool = False,
    linked: bool = False,
    forms: bool = False,
    downloads: bool = False,
    script: str = "",
) -> str:
    """The policy of a page whose one style sheet is `style`.

    Its sandbox gives a page no origin: a click may lead to Airflow's pages, nothing else leads anywhere. A `live` page
    reloads itself, which browsers call automatic and allow only where scripts would be (there are none: no source of
    them is allowed); and as itself, or the login would not come along. So does a `linked` one, whose links lead on to
    our pages: within Airflow's frame a login goes along only where a page comes from itself.

    A page with `forms` may ask our pages what was filled in, one with `downloads` may give a file. The one page with a
    `script` runs that text and no other, and it speaks to nobody but the server that it came from.
    """
    allowed = "allow-top-navigation-by-user-activation"
    if live or linked:
        allowed += " allow-same-origin"
    if live or script:
        allowed += " allow-scripts"
    allowed += " allow-forms" if forms else ""
    allowed += " allow-downloads" if downloads else ""
    sources = f"style-src {_digest(style)}"
    sources += f"; script-src {_digest(script)}; connect-src 'self'" if script else ""
    nothing = _NOTHING.replace("form-action 'none'", "form-action 'self'") if forms else _NOTHING
    return f"{nothing}; {sources}; {_FRAMES}; sandbox {allowed}"


def _digest(text: str) -> str:
    """A text as the only one of its kind that may be there."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


class Protected:
    """An ASGI app whose every answer carries HEADERS, unless it says otherwise itself."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        async def protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent = list(message.get("headers", ()))
                named = {name.lower() for name, _ in sent}
                missing = [(name, value) for name, value in _ENCODED if name not in named]
                message["headers"] = [*sent, *missing]
            await send(message)

        await self._app(scope, receive, protected if scope["type"] == "http" else send)
