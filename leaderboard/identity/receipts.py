"""Receipts: what a server took in, signed with its Ed25519 key (RFC 8032), checked without asking it.

The signature covers the receipt's values without itself as canonical JSON: keys sorted, no blanks, UTF-8. How
a receipt is laid out in a file does not matter; every value in it does.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Annotated, Any, Literal

import orjson
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization as pem
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from pydantic import BaseModel, ConfigDict, Field

from cir_datasets.common.atomic import sync_folder
from cir_datasets.common.paths import sha256_of
from leaderboard.errors import ReceiptError, ServeError

_Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Receipt(BaseModel):
    """What a server says about a file that it has taken in and made durable."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    format: Literal["cir-receipt"] = "cir-receipt"
    format_version: Annotated[int, Field(ge=1, le=1)] = 1
    """+1 whenever a field is added or means something else."""
    id: str
    """The submission's."""
    board: str
    sha256: _Hash
    """Of the file's bytes as they were sent."""
    size: Annotated[int, Field(ge=1)]
    """Bytes."""
    received_at: str
    """By the server's clock: ISO 8601, UTC."""
    status_url: str
    """Where its outcome stands; without a host where the server does not know its own address."""
    server: str
    """The server's name for itself."""
    key_id: Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
    """The first 16 hexadecimal digits of the sha256 of the public key's 32 bytes."""
    public_key: _Hash
    """The 32 bytes of the Ed25519 key that the signature is checked with, as hexadecimal digits."""
    signature: Annotated[str, Field(pattern="^[0-9a-f]{128}$")]

    def signed_bytes(self) -> bytes:
        """What the signature covers: all other fields."""
        return orjson.dumps(self.model_dump(exclude={"signature"}), option=orjson.OPT_SORT_KEYS)

    def to_bytes(self) -> bytes:
        """The receipt as it is kept in a file: canonical JSON and a line feed."""
        return orjson.dumps(self.model_dump(), option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)


def signing_key(given: Path | None, home: Path) -> Ed25519PrivateKey:
    """A server's key: of a PEM file, or its own below its home, made when it is missing.

    Raises:
        ServeError: it cannot be read or made, others may read the server's own, or it is of another kind.
    """
    path = given or home / "signing_key.pem"
    try:
        if given is None and not path.exists():
            _make(path)
        private = pem.load_pem_private_key(path.read_bytes(), password=None)
    except OSError as error:
        raise ServeError(f"{path}: {error.strerror}. Fix: make it readable: it signs receipts.") from error
    except (ValueError, TypeError, UnsupportedAlgorithm):
        private = None  # nothing of its content is shown
    if given is None and path.stat().st_mode & 0o077:
        raise ServeError(f"{path}: others can use the server's signing key. Fix: chmod 600 {path}")
    if not isinstance(private, Ed25519PrivateKey):
        raise ServeError(f"{path}: not an Ed25519 key. Fix: openssl genpkey -algorithm ed25519 -out FILE")
    return private


def _make(path: Path) -> None:
    """Write a new key, whole or not at all; where another process is faster, its key stays."""
    form = pem.Encoding.PEM, pem.PrivateFormat.PKCS8, pem.NoEncryption()
    with NamedTemporaryFile(dir=path.parent, buffering=0) as file, suppress(FileExistsError):
        file.write(Ed25519PrivateKey.generate().private_bytes(*form))
        os.fsync(file.fileno())
        os.link(file.name, path)
        sync_folder(path.parent)


def public_pem(public: Ed25519PublicKey) -> str:
    """A public key in PEM."""
    return public.public_bytes(pem.Encoding.PEM, pem.PublicFormat.SubjectPublicKeyInfo).decode()


def _names(public: Ed25519PublicKey) -> dict[str, Any]:
    """The fields that name a key."""
    raw = public.public_bytes_raw()
    return {"key_id": hashlib.sha256(raw).hexdigest()[:16], "public_key": raw.hex()}


def sign(key: Ed25519PrivateKey, **claim: Any) -> Receipt:
    """A signed receipt; `claim` holds the fields that say what was taken in."""
    unsigned = Receipt(**claim, **_names(key.public_key()), signature="0" * 128)
    return unsigned.model_copy(update={"signature": key.sign(unsigned.signed_bytes()).hex()})


def verify(content: bytes, name: str, file: Path | None = None, key: Path | None = None) -> Receipt:
    """Check a receipt, and that a file is the one that it is for; nothing is asked of any server.

    Args:
        content: the receipt's JSON.
        name: where it came from, for the message.
        file: the rank file; None where the receipt alone is checked.
        key: PEM file of the server's public key; None takes the one inside the receipt, which shows only that
            nobody has changed the receipt since whoever holds that key signed it.

    Raises:
        ReceiptError: it is no receipt, it was changed, another key signed it, or the file is another one.
        OSError: a file cannot be read.
    """
    try:
        receipt = Receipt.model_validate_json(content)
        public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(receipt.public_key))
        public.verify(bytes.fromhex(receipt.signature), receipt.signed_bytes())
        if receipt.key_id != _names(public)["key_id"]:
            raise InvalidSignature
    except (ValueError, InvalidSignature) as error:
        why = "its signature does not fit" if isinstance(error, InvalidSignature) else "no whole receipt"
        raise ReceiptError(f"{name}: {why}. Fix: take the receipt as the server gave it.") from None
    if key is not None and key.read_bytes().split() != public_pem(public).encode().split():
        raise ReceiptError(f"{name}: {key} is not the key that made it. Fix: save what its /api/key answers.")
    if file is not None and sha256_of(file) != receipt.sha256:
        why = f"not the file of receipt {receipt.id}: {file.stat().st_size} bytes, not {receipt.size} bytes"
        raise ReceiptError(f"{file}: {why}. Fix: name the file as it was sent, byte for byte.")
    return receipt
