"""What stands before the application, each part alone, with faults that cannot be caused from outside."""

from __future__ import annotations

import errno
import logging
import sqlite3
import sys
from collections.abc import Callable
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy.exc import OperationalError
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse

from leaderboard.web import options
from leaderboard.web.failures import RAISED, ErrorAnswers
from leaderboard.web.logs import PlainLines
from leaderboard.web.origins import host_name


def asked(handler: Callable[..., Any], path: str = "/") -> Any:
    app = FastAPI(exception_handlers=RAISED)
    app.add_middleware(ErrorAnswers)
    app.get("/")(handler)
    with TestClient(app, raise_server_exceptions=False) as client:
        return client.get(path)


def raising(error: Exception) -> Callable[[], None]:
    def handler() -> None:
        raise error

    return handler


def full() -> OperationalError:
    """SQLite's own error of a database that may not grow, as SQLAlchemy raises it."""
    database = sqlite3.connect(":memory:")
    database.execute("PRAGMA max_page_count = 1")
    try:
        database.execute("CREATE TABLE t (x)")
    except sqlite3.OperationalError as error:
        wrapped = OperationalError("INSERT", {}, error)
        wrapped.__cause__ = error
        return wrapped
    raise AssertionError("the database grew")


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/home/secret"), 507, "no-space"),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), 507, "no-space"),
        (full(), 507, "no-space"),
        (
            OperationalError("SELECT secret", {}, sqlite3.OperationalError("database is locked")),
            503,
            "unavailable",
        ),
        (OSError(errno.EMFILE, "Too many open files"), 503, "unavailable"),
        (OSError(errno.EACCES, "secret"), 500, "internal-error"),
        (RuntimeError("secret"), 500, "internal-error"),
    ],
)
def test_an_error_has_its_status_and_tells_nothing(
    error: Exception, status: int, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    answer = asked(raising(error))
    assert answer.status_code == status
    assert answer.json()["error"]["code"] == code
    assert "secret" not in answer.text
    assert len(caplog.records) == 1


def test_an_unexpected_error_is_logged_under_the_id_that_is_answered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answer = asked(raising(RuntimeError("deep inside")))
    number = answer.json()["error"]["fix"].rpartition(" ")[2]
    assert f"error {number}" in caplog.text
    assert "deep inside" in caplog.text


def test_errors_of_others_get_our_form_and_keep_their_headers() -> None:
    plain = asked(lambda: PlainTextResponse("Too bad", 418))
    assert plain.json()["error"] == {
        "code": "bad-request",
        "message": "I'm a Teapot",
        "fix": "correct the request and send it again",
    }

    def limited() -> None:
        raise HTTPException(405, headers={"Allow": "GET"})

    assert asked(limited).headers["allow"] == "GET"

    def needs(number: int) -> None:
        del number

    answer = asked(needs, "/?number=x")
    assert answer.status_code == 422
    assert answer.json()["error"]["message"].startswith("query.number: ")


def line_of(message: str, *arguments: object, error: Exception | None = None) -> str:
    found = (type(error), error, None) if error else None
    record = logging.LogRecord("a", logging.ERROR, __file__, 1, message, arguments, found)
    return PlainLines("%(levelname)s %(message)s").format(record)


def test_a_log_line_cannot_be_forged_and_holds_no_secret() -> None:
    assert line_of("%s gone", "/a\n2026 ERROR b\r\x1b[31m") == "ERROR /a\\n2026 ERROR b\\r\\x1b[31m gone"
    shown = line_of(
        "failed", error=ValueError("postgresql://me:secret@host hf_abcdefghijklmnop Bearer abcdefghijk")
    )
    assert "secret" not in shown
    assert "abcdefgh" not in shown


def test_trouble_of_the_machine_is_logged_without_a_traceback() -> None:
    for error, traced in ((OSError(errno.ENOSPC, "No space left on device"), False), (KeyError("a"), True)):
        try:
            raise error
        except (OSError, KeyError):
            record = logging.LogRecord("x", logging.ERROR, "", 1, "it failed", (), sys.exc_info())
        line = PlainLines("%(message)s").format(record)
        assert line.startswith("it failed\n")
        assert (type(error).__name__ in line, "Traceback" in line) == (True, traced)


@pytest.mark.parametrize("name", ["https://a.example", "a.example/", "a b", "a@b", "*", "a.example:x"])
def test_what_is_not_a_host_name_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert host_name(name) == ""
    monkeypatch.setenv("CIR_LEADERBOARD_HOSTS", f"board.example.org, {name}")
    with pytest.raises(Exception, match="is not a host name"):
        options.read()


def test_options_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CIR_LEADERBOARD_HOSTS", "Board.example.org:443,")
    monkeypatch.setenv("SPACE_ID", "team/board")
    monkeypatch.setenv("CIR_LEADERBOARD_URL", "https://me.example.org/leaderboard")
    found = options.read(["[::2]", "0.0.0.0"])
    names = {"board.example.org", "me.example.org", "::2", "0.0.0.0"}
    assert found.hosts == {"localhost", "127.0.0.1", "::1"} | names
    assert found.framed_by == "'self' https://huggingface.co"
