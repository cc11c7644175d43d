"""`cir leaderboard serve` and `work`: the processes of a leaderboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cir_datasets.common.terminal import echo
from leaderboard.options import Home

if TYPE_CHECKING:
    from fastapi import FastAPI


def serve(
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 lets others reach it.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="TCP port; 0 takes any that is free.", min=0, max=65535)] = 7860,
    home: Home = None,
    allowed_hosts: Annotated[
        list[str] | None,
        typer.Option(
            "--allowed-host",
            help="Host name that the server answers to, besides its address and this machine's; repeatable.",
        ),
    ] = None,
    behind_proxy: Annotated[
        list[str] | None,
        typer.Option(
            "--behind-proxy",
            metavar="ADDRESS",
            help="Address or network of a proxy in front (127.0.0.1, 172.16.0.0/12); repeatable. It alone is "
            "believed: its X-Forwarded-For ends with the sender's address, X-Forwarded-Proto is the scheme.",
        ),
    ] = None,
    workers: Annotated[
        int,
        typer.Option(help="Workers: processes to keep running; 0 where  cir leaderboard work  runs.", min=0),
    ] = 1,
) -> None:
    """Serve the leaderboard: pages and API, until Ctrl-C.

    \b
    Example:
        cir leaderboard serve --port 7860
    """
    from leaderboard import settings
    from leaderboard.web import options
    from leaderboard.web.app import create_app
    from leaderboard.web.serving import serve as run

    chosen = settings.read(home)
    web = options.read([*(allowed_hosts or []), f"[{host}]" if ":" in host else host], behind_proxy or [])
    options.check_place(host, chosen.accounts, web.proxies)

    def ready(address: str) -> None:
        echo(f"Leaderboard on {address} (Ctrl-C stops it). State: {chosen.home}", err=True)

    def made() -> FastAPI:
        app = create_app(chosen=chosen, options=web, workers=workers)
        for alarm in app.state.server.alarms:
            echo(alarm, err=True, red=True)
        return app

    run(made, host, port, ready, web)
    echo("Stopped.", err=True)


def work(
    home: Home = None,
    parent: Annotated[int | None, typer.Option(hidden=True, help="Process whose end ends this one.")] = None,
) -> None:
    """Judge what was submitted, until Ctrl-C; several workers may share a leaderboard.

    `cir leaderboard serve` starts one by itself. Where web process and worker run on machines of their own,
    both are given the same CIR_LEADERBOARD_DATABASE and CIR_LEADERBOARD_FILES.

    \b
    Example:
        cir leaderboard work
    """
    import signal

    from leaderboard import settings
    from leaderboard.queue.processes import live_no_longer_than
    from leaderboard.server import Server
    from leaderboard.web import logs, options

    server = Server.open(settings.read(home))
    logs.configure(options.read().logs, "worker.log")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, server.worker.stopped_by_signal)
    if parent is not None:
        live_no_longer_than(parent)
    else:
        echo(f"Judging what is submitted to {server.settings.home} (Ctrl-C stops it).", err=True)
    server.worker.run()
    server.close()
    if parent is None:
        echo("Stopped.", err=True)
