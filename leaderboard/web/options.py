"""What the HTTP side is given from outside, beside the leaderboard's settings."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from pathlib import Path
from urllib.parse import urlsplit

from cir_metrics.errors import CallError
from leaderboard.web.origins import host_name

JSON_BYTES = 64 * 1024
"""Bytes of a body that is not an upload. A value of JSON costs up to 30 times its bytes once it is read."""

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class WebOptions:
    """Options of one web process.

    Args:
        hosts: names that it answers to, in small letters, without ports.
        framed_by: who may show its pages in a frame, as `frame-ancestors` writes it.
        logs: folder of log files that rotate; None logs to standard error.
        proxies: addresses and networks whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed.
    """

    hosts: frozenset[str] = frozenset(_LOOPBACK)
    framed_by: str = "'self'"
    logs: Path | None = None
    proxies: tuple[str, ...] = ()


def read(hosts: Iterable[str] = (), proxies: Iterable[str] = ()) -> WebOptions:
    """Options from the environment (`docs/environment.md` lists the variables).

    Args:
        hosts: further names, of the command line.
        proxies: addresses and networks of the proxies in front, of the command line.

    Raises:
        CallError: a name, an address or a number is malformed.
    """
    written = [
        *hosts,
        *os.environ.get("CIR_LEADERBOARD_HOSTS", "").split(","),
        os.environ.get("SPACE_HOST", ""),
    ]
    written.append(urlsplit(os.environ.get("CIR_LEADERBOARD_URL", "")).netloc.rpartition("@")[2])
    names = [name.strip() for name in written if name.strip()]
    for name in names:
        if not host_name(name):
            raise CallError(
                f"{name!r} is not a host name. Fix: write names without scheme and path, for example "
                "board.example.org, with --allowed-host or, separated by commas, in CIR_LEADERBOARD_HOSTS."
            )
    logs = os.environ.get("CIR_LEADERBOARD_LOGS")
    return WebOptions(
        hosts=frozenset([*_LOOPBACK, *map(host_name, names)]),
        framed_by="'self' https://huggingface.co" if os.environ.get("SPACE_ID") else "'self'",
        logs=Path(logs).expanduser().absolute() if logs else None,
        proxies=tuple(map(_network, proxies)),
    )


def check_place(host: str, accounts: str, proxies: Sequence[str]) -> None:
    """Refuse to listen where strangers reach a server that has no accounts, or that no proxy guards.

    Args:
        host: address to listen on.
        accounts: kind of accounts.
        proxies: addresses and networks of the proxies in front.

    Raises:
        CallError: they would reach it.
    """
    if _is_loopback(host):
        return
    if accounts == "local":
        raise CallError(
            f"--host {host}: others could reach this leaderboard, and whoever reaches it is its organiser. "
            "Fix: set CIR_LEADERBOARD_ACCOUNTS=tokens, and make tokens with  cir leaderboard token create "
            "NAME, or leave --host out."
        )
    # A Space is reached through the Hub's proxy alone.
    if not proxies and not os.environ.get("SPACE_ID"):
        raise CallError(
            f"--host {host}: this server leaves TLS and limits on connections to a proxy in front of it "
            "(nginx, Caddy). Fix: name the proxy's address or network with --behind-proxy, and leave --host "
            "out where the proxy runs on this machine."
        )


def _is_loopback(host: str) -> bool:
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"


def _network(written: str) -> str:
    try:
        return str(ip_network(written.strip(), strict=False))
    except ValueError:
        raise CallError(
            f"--behind-proxy {written[:80]!r}: not an address or network. "
            "Fix: write, for example, 127.0.0.1 or 172.16.0.0/12."
        ) from None
