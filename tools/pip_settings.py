"""What pip is set to on this machine - which index, through which proxy, trusting which certificates - said to uv.

uv reads none of pip's files and variables. Where a mirror was set for pip alone, uv would go past it.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Mapping

SECTIONS = ("global", "install", ":env:")
"""The sections of pip's configuration that `pip install` obeys, the stronger one later."""


def pip_settings(listed: str) -> dict[str, str]:
    """The settings in the output of `pip config list`, by their names without section."""
    found: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for line in listed.splitlines():
        key, _, value = line.partition("=")
        section, _, name = key.partition(".")
        if section in found and value:
            found[section][name] = str(ast.literal_eval(value))
    return {name: value for section in SECTIONS for name, value in found[section].items()}


def uv_environment(settings: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that tell uv what `settings` tell pip; one that is set already, under any of its names, stays."""

    def places(name: str) -> list[str]:
        return [place for place in settings.get(name, "").split() if "://" in place or os.path.isdir(place)]  # noqa: PTH112

    wanted = {
        ("UV_DEFAULT_INDEX", "UV_INDEX_URL"): settings.get("index-url", ""),
        ("UV_INDEX", "UV_EXTRA_INDEX_URL"): settings.get("extra-index-url", ""),
        ("UV_FIND_LINKS",): ",".join(places("find-links")),
        ("UV_INSECURE_HOST",): settings.get("trusted-host", ""),
        ("SSL_CERT_FILE",): settings.get("cert", ""),
        ("SSL_CLIENT_CERT",): settings.get("client-cert", ""),
        ("ALL_PROXY", "all_proxy", "HTTPS_PROXY", "https_proxy"): settings.get("proxy", ""),
        ("UV_HTTP_TIMEOUT",): settings.get("timeout", settings.get("default-timeout", "")),
        # pip takes the best version of all indexes; every file is checked against its hash, so it may come from any.
        ("UV_INDEX_STRATEGY",): "unsafe-best-match",
        # pip trusts what the system trusts.
        ("UV_SYSTEM_CERTS",): "true",
    }
    return {
        names[0]: " ".join(value.split())
        for names, value in wanted.items()
        if value and not any(environ.get(name) for name in names)
    }


def uv_flags(settings: Mapping[str, str]) -> list[str]:
    """What of `settings` uv takes as words of its command only."""
    return ["--no-index"] if settings.get("no-index", "").lower() in ("1", "true", "yes", "on") else []
