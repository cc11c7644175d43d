"""Receipts: whatever is changed afterwards is noticed, and said in words of its own."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from programs import run_program
from says import says
from typer.testing import CliRunner

from cir_metrics.errors import CallError
from leaderboard import settings
from leaderboard.cli import build
from leaderboard.errors import ReceiptError, ServeError
from leaderboard.identity.receipts import Receipt, public_pem, sign, signing_key, verify

CONTENT = b'{"format":"cir-rank-file"}\n'
CLAIM = {
    "id": "289f32ba7118",
    "board": "shapes/val",
    "sha256": "d7cb3be9cf6b7e4ae5ba3a2ed4c0d13d2bb5bd5cbbc4d1f4ad8ff1d2a9a66c15",
    "size": len(CONTENT),
    "received_at": "2026-11-22T16:00:00+00:00",
    "status_url": "https://board.example.org/api/submissions/289f32ba7118",
    "server": "Zürich board",
}

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")


@pytest.fixture
def key() -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(bytes(range(32)))


@pytest.fixture
def pem(key: Ed25519PrivateKey, tmp_path: Path) -> Path:
    path = tmp_path / "key.pem"
    path.write_text(public_pem(key.public_key()))
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "run.json"
    path.write_bytes(CONTENT)
    return path


@pytest.fixture
def receipt(key: Ed25519PrivateKey) -> Receipt:
    return sign(key, **{**CLAIM, "sha256": hashlib.sha256(CONTENT).hexdigest()})


def test_a_receipt_fits_its_file_and_its_key(receipt: Receipt, pem: Path, file: Path) -> None:
    assert verify(receipt.to_bytes(), "receipt.json", file, pem) == receipt
    assert verify(receipt.to_bytes(), "receipt.json") == receipt


def test_the_signed_form_is_canonical_json(receipt: Receipt) -> None:
    values = json.loads(receipt.to_bytes())
    shuffled = dict(reversed(values.items()))
    assert Receipt(**shuffled).to_bytes() == receipt.to_bytes()
    assert "Zürich".encode() in receipt.signed_bytes()
    assert b"signature" not in receipt.signed_bytes()
    verify(json.dumps(shuffled, indent=2).encode(), "receipt.json")


@needs_openssl
def test_another_implementation_agrees(receipt: Receipt, pem: Path, tmp_path: Path) -> None:
    """OpenSSL checks the signature with the key as /api/key answers it."""
    (tmp_path / "signed").write_bytes(receipt.signed_bytes())
    (tmp_path / "signature").write_bytes(bytes.fromhex(receipt.signature))
    command = "openssl pkeyutl -verify -pubin -inkey key.pem -rawin -in signed -sigfile signature"
    done = run_program(command.split(), cwd=tmp_path, code=None)
    assert "Signature Verified Successfully" in done.stdout, done.stderr


def test_every_changed_bit_of_a_receipt_is_noticed(receipt: Receipt, pem: Path, file: Path) -> None:
    content = receipt.to_bytes()
    unnoticed = []
    for place in range(len(content)):
        for bit in range(8):
            changed = bytearray(content)
            changed[place] ^= 1 << bit
            try:
                verify(bytes(changed), "receipt.json", file, pem)
            except ReceiptError:
                continue
            unnoticed.append((place, bit))
    assert unnoticed == []


def test_every_changed_bit_of_the_file_is_noticed(receipt: Receipt, file: Path) -> None:
    for place in range(len(CONTENT)):
        for bit in range(8):
            changed = bytearray(CONTENT)
            changed[place] ^= 1 << bit
            file.write_bytes(changed)
            with pytest.raises(ReceiptError, match="not the file of receipt"):
                verify(receipt.to_bytes(), "receipt.json", file)


@pytest.mark.parametrize("content", [CONTENT[:-1], CONTENT + b"\n", b""])
def test_a_file_of_another_size_is_noticed(receipt: Receipt, file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(ReceiptError) as caught:
        verify(receipt.to_bytes(), "receipt.json", file)
    sizes = f"{len(content)} bytes", f"{len(CONTENT)} bytes"
    says(caught, "run.json", "289f32ba7118", *sizes, "Fix: ", "byte for byte")


@pytest.mark.parametrize("field", list(Receipt.model_fields))
@pytest.mark.parametrize("value", ["", "x", None, 0, 1, 1.0, True, [], "0" * 64, "0" * 128, "\ud800"])
def test_every_changed_value_is_noticed(receipt: Receipt, pem: Path, field: str, value: Any) -> None:
    values = json.loads(receipt.to_bytes())
    if type(value) is type(values[field]) and value == values[field]:
        return
    values[field] = value
    with pytest.raises(ReceiptError):
        verify(json.dumps(values).encode(), "receipt.json", None, pem)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b"[" * 30_000,
        b'{"format":"cir-receipt"}',
        b'{"format":"cir-receipt","format_version":2}',
    ],
)
def test_what_is_not_a_receipt_is_refused(content: bytes) -> None:
    with pytest.raises(ReceiptError) as caught:
        verify(content, "receipt.json")
    says(caught, "receipt.json: ", "no whole receipt", "Fix: ")


def test_a_receipt_of_another_key_is_refused_though_it_fits_its_own(receipt: Receipt, pem: Path) -> None:
    forged = sign(Ed25519PrivateKey.generate(), **CLAIM)
    verify(forged.to_bytes(), "receipt.json")
    with pytest.raises(ReceiptError) as caught:
        verify(forged.to_bytes(), "receipt.json", None, pem)
    says(caught, "receipt.json", "key.pem is not the key that made it", "Fix: ")
    named = sign(Ed25519PrivateKey.generate(), **CLAIM).model_copy(update={"key_id": receipt.key_id})
    with pytest.raises(ReceiptError, match="its signature does not fit"):
        verify(named.to_bytes(), "receipt.json")
    mixed = forged.model_copy(update={"public_key": receipt.public_key, "key_id": receipt.key_id})
    with pytest.raises(ReceiptError, match="its signature does not fit"):
        verify(mixed.to_bytes(), "receipt.json", None, pem)


def test_a_server_makes_its_key_once_and_for_itself_alone(tmp_path: Path) -> None:
    path = tmp_path / "signing_key.pem"
    before = os.umask(0)
    try:
        made = signing_key(None, tmp_path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert public_pem(signing_key(None, tmp_path).public_key()) == public_pem(made.public_key())
    assert [path.name for path in tmp_path.iterdir()] == ["signing_key.pem"]
    path.chmod(0o640)
    with pytest.raises(ServeError) as caught:
        signing_key(None, tmp_path)
    says(caught, "signing_key.pem", "others", "Fix: chmod 600")
    signing_key(path, tmp_path)  # how a given file is guarded is up to whoever gives it


MAKES = """
import sys; from pathlib import Path; from leaderboard.identity.receipts import public_pem, signing_key
sys.stdin.readline(); print(public_pem(signing_key(None, Path(sys.argv[1])).public_key()))
"""


def test_servers_that_start_at_once_share_one_key(tmp_path: Path) -> None:
    command = [sys.executable, "-c", MAKES, str(tmp_path)]
    pipe = subprocess.PIPE
    started = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(3)]
    for process in started:
        process.stdin.write("\n")
        process.stdin.flush()
    assert len({process.communicate()[0] for process in started}) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["signing_key.pem"]


@pytest.mark.parametrize(
    "content", ["", "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYD\n-----END PRIVATE KEY-----\n", "public"]
)
def test_what_is_not_a_signing_key_is_named_and_not_shown(
    key: Ed25519PrivateKey, tmp_path: Path, content: str
) -> None:
    path = tmp_path / "given.pem"
    path.write_text(public_pem(key.public_key()) if content == "public" else content)
    with pytest.raises(ServeError) as caught:
        signing_key(path, tmp_path)
    says(caught, "given.pem: not an Ed25519 key", "Fix: ", "openssl genpkey -algorithm ed25519")
    assert "MC4C" not in str(caught.value)
    with pytest.raises(ServeError, match=r"no\.pem: .*\. Fix: "):
        signing_key(tmp_path / "no.pem", tmp_path)


@needs_openssl
def test_a_key_made_by_openssl_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "made.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", str(path)], check=True)
    public = subprocess.run(["openssl", "pkey", "-in", str(path), "-pubout"], capture_output=True, check=True)
    opened = signing_key(path, tmp_path)
    assert public_pem(opened.public_key()) == public.stdout.decode()


def test_the_command_checks_receipt_file_and_key(
    receipt: Receipt, pem: Path, file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "receipt.json"
    path.write_bytes(receipt.to_bytes())
    runner = CliRunner()
    done = runner.invoke(build(), ["receipt", "verify", str(path), str(file), "--key", str(pem)])
    assert done.exit_code == 0
    says(
        done.stdout,
        "receipt 289f32ba7118",
        "Zürich board",
        "shapes/val",
        "it is the key in",
        "as ",
        "run.json is",
    )
    assert done.stderr == ""
    alone = runner.invoke(build(), ["receipt", "verify", str(path)])
    assert alone.exit_code == 0
    says(alone.stderr, "nybody may have signed it", "--key")
    file.write_bytes(CONTENT[::-1])
    changed = runner.invoke(build(), ["receipt", "verify", str(path), str(file), "--key", str(pem)])
    assert isinstance(changed.exception, ReceiptError)
    assert changed.stdout == ""
    missing = runner.invoke(build(), ["receipt", "verify", str(path), str(tmp_path / "gone.json")])
    assert isinstance(missing.exception, CallError)


@pytest.mark.parametrize("content", ["", "private"])
def test_what_is_not_a_public_key_is_refused(receipt: Receipt, tmp_path: Path, content: str) -> None:
    path = tmp_path / "signing_key.pem"
    signing_key(None, tmp_path)
    if not content:
        path.write_text(content)
    with pytest.raises(ReceiptError, match=r"signing_key\.pem is not the key that made it\. Fix: "):
        verify(receipt.to_bytes(), "receipt.json", None, path)


def test_name_address_and_key_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CIR_LEADERBOARD_NAME", "Zürich board")
    monkeypatch.setenv("CIR_LEADERBOARD_URL", "https://board.example.org/cir/")
    monkeypatch.setenv("CIR_LEADERBOARD_SIGNING_KEY", str(tmp_path / "key.pem"))
    found = settings.read(tmp_path)
    assert (found.name, found.url) == ("Zürich board", "https://board.example.org/cir")
    assert found.signing_key == tmp_path / "key.pem"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("NAME", "two\nlines"),
        ("NAME", "<b>"),
        ("URL", "board.example.org"),
        ("URL", "https://me:secret@board.example.org"),
    ],
)
def test_a_wrong_name_or_address_is_named_and_no_password_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str, value: str
) -> None:
    monkeypatch.setenv(f"CIR_LEADERBOARD_{variable}", value)
    with pytest.raises(CallError) as caught:
        settings.read(tmp_path)
    says(caught, f"CIR_LEADERBOARD_{variable}: ", "Fix: ")
    assert "secret" not in str(caught.value)
