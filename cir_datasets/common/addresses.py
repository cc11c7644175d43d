"""Addresses of servers and proxies, apart from the user and the password in them."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.request import getproxies

from cir_metrics.errors import CallError

if TYPE_CHECKING:
    import httpx

_PROXIES = ("http", "https", "socks5", "socks5h")


def address_and_login(given: str) -> tuple[str, httpx.BasicAuth | None] | None:
    """A server's address without user and password, and these: no error of any library then shows them.

    Args:
        given: what a person wrote, such as `https://me:secret@host.org/path/`.

    Returns:
        The address without a slash at its end, and who logs in there, or None where nobody does; None in
        place of both where it is not an address of http or https, or has a query. Do not show `given` then:
        it may hold a password all the same.

    Example:
        >>> address, login = address_and_login("https://me:secret@host.org/path/")
        >>> address, login is None
        ('https://host.org/path', False)
        >>> address_and_login("http://me:a/b@host.org") is None
        True
    """
    import httpx

    try:
        url = httpx.URL(given.strip())
    except httpx.InvalidURL:
        return None
    if url.scheme not in ("http", "https") or not url.host or url.query or url.fragment:
        return None
    login = httpx.BasicAuth(url.username, url.password) if url.userinfo else None
    return str(url.copy_with(username="", password="")).rstrip("/"), login


def endpoint(variable: str, default: str) -> tuple[str, httpx.BasicAuth | None]:
    """The server that a variable of the environment names, and who logs in there.

    Args:
        variable: its name, `HF_ENDPOINT`.
        default: the address where it is not set.

    Raises:
        CallError: it is not an address; the message names the variable alone.
    """
    found = address_and_login(os.environ.get(variable) or default)
    if found is None:
        raise CallError(
            f"{variable}: not an address. Fix: write http:// or https:// and the host; in a "
            "password write %2F for /, %23 for # and %3F for ?."
        )
    return found


def check_proxies() -> None:
    """Refuse a proxy of the environment that no client could use, before a library shows it.

    Raises:
        CallError: `HTTP_PROXY`, `HTTPS_PROXY` or `ALL_PROXY` is not an address; the message names it alone.
    """
    import httpx

    for name, given in getproxies().items():
        if name not in ("http", "https", "all"):
            continue
        try:
            url = httpx.URL(given if "://" in given else f"http://{given}")
        except httpx.InvalidURL:
            url = httpx.URL("")
        packages = not url.scheme.startswith("socks") or find_spec("socksio") is not None
        if url.scheme not in _PROXIES or not url.host or not packages:
            raise CallError(
                f"{name.upper()}_PROXY: not a proxy that can be used. Fix: write http://HOST:PORT, with %2F "
                "for /, %23 for # and %3F for ? in a password, or unset it; socks5:// needs socksio."
            )
