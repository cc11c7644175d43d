"""Receipts: what a server took in, signed with its Ed25519 key (RFC 8032), checked without asking it.

The signature covers the receipt's values without itself as canonical JSON: keys sorted, no blanks, UTF-8. How
a receipt is laid out in a file does not matter; every value in it does.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cir_datasets.common.atomic import sync_folder
from cir_datasets.errors import upgrade_lines
from leaderboard.errors import ReceiptError, ServeError

if TYPE_CHECKING:
    # Imported where it is needed only: `cir submit` keeps receipts without it.
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

FORMAT: Literal["cir-receipt"] = "cir-receipt"
FORMAT_VERSION = 1
"""+1 whenever a field is added or means something else."""

LONGEST = 2**16
"""Bytes; a receipt has less than 1,000."""
_ID_LENGTH = 16
_OTHERS = stat.S_IRWXG | stat.S_IRWXO

_Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Receipt(BaseModel):
    """What a server says about a file that it has taken in and made durable."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    format: Literal["cir-receipt"] = FORMAT
    format_version: Annotated[int, Field(ge=FORMAT_VERSION, le=FORMAT_VERSION)] = FORMAT_VERSION
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
    public_key: _Hash
    """The 32 bytes of the Ed25519 key that the signature is checked with, as hexadecimal digits."""
    signature: Annotated[str, Field(pattern="^[0-9a-f]{128}$")]

    def signed_bytes(self) -> bytes:
        """What the signature covers: all other fields."""
        return canonical_json(self.model_dump(exclude={"signature"}))

    def to_bytes(self) -> bytes:
        """The receipt as it is kept in a file: canonical JSON and a line feed."""
        return canonical_json(self.model_dump()) + b"\n"


class SigningKey:
    """A server's Ed25519 key.

    Args:
        private: the key itself.
    """

    def __init__(self, private: Ed25519PrivateKey) -> None:
        """Keep it."""
        self._private = private
        self.public = private.public_key()

    @classmethod
    def open(cls, path: Path, *, make: bool) -> SigningKey:
        """Read the key in a PEM file.

        Args:
            path: the file.
            make: whether the file is the server's own: made when it is missing, for its user alone, and
                refused when others may read it.

        Raises:
            ServeError: it cannot be read or made, others may read it, or it holds something else.
        """
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        try:
            if make and not path.exists():
                _make(path)
            if make and path.stat().st_mode & _OTHERS:
                raise ServeError(
                    f"{path}: others than its owner can use the server's signing key. Fix: chmod 600 {path}; "
                    "if somebody may have copied it, remove it: the next start makes a new one."
                )
            content = path.read_bytes()
        except OSError as error:
            raise ServeError(
                f"{path}: the server's signing key cannot be read or made: {error.strerror}. "
                "Fix: make it readable, or name another file in CIR_LEADERBOARD_SIGNING_KEY."
            ) from error
        try:
            private = serialization.load_pem_private_key(content, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            private = None  # nothing of its content is shown
        if not isinstance(private, Ed25519PrivateKey):
            raise ServeError(
                f"{path}: not an Ed25519 key in PEM without a password. "
                "Fix: make one with  openssl genpkey -algorithm ed25519 -out FILE"
            )
        return cls(private)

    @property
    def public_pem(self) -> str:
        """The public half in PEM."""
        from cryptography.hazmat.primitives import serialization

        form = serialization.PublicFormat.SubjectPublicKeyInfo
        return self.public.public_bytes(serialization.Encoding.PEM, form).decode("ascii")

    def sign(self, **claim: Any) -> Receipt:
        """A signed receipt.

        Args:
            claim: the fields of `Receipt` that say what was taken in.
        """
        named = {**claim, "key_id": key_id(self.public), "public_key": self.public.public_bytes_raw().hex()}
        unsigned = Receipt(**named, signature="0" * 128)
        return Receipt(**named, signature=self._private.sign(unsigned.signed_bytes()).hex())


def canonical_json(values: dict[str, Any]) -> bytes:
    """The one form in which values are signed: keys sorted, no blanks, UTF-8.

    Args:
        values: strings and whole numbers by name; other numbers have several forms.

    Example:
        >>> canonical_json({"size": 7, "board": "shapes/val"})
        b'{"board":"shapes/val","size":7}'
    """
    return json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8")


def key_id(public: Ed25519PublicKey) -> str:
    """What a key is called: the first 16 hexadecimal digits of the sha256 of its 32 bytes."""
    return hashlib.sha256(public.public_bytes_raw()).hexdigest()[:_ID_LENGTH]


def read_receipt(content: bytes, name: str) -> Receipt:
    """A receipt from its JSON; its signature is not looked at.

    Args:
        content: of a file, or of an answer's field `receipt`.
        name: where it came from, for the message.

    Raises:
        ReceiptError: it is not a receipt, or a newer version of this package wrote it.
    """
    try:
        values = json.loads(content, object_pairs_hook=_once_each) if len(content) <= LONGEST else None
    except (ValueError, RecursionError):  # UnicodeDecodeError is one
        values = None
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise ReceiptError(
            f'{name}: not a receipt: no JSON object with "format": "{FORMAT}". '
            "Fix: name the file that `cir submit --receipt` wrote, or the field `receipt` of an upload's "
            "answer."
        )
    version = values.get("format_version")
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise ReceiptError(
            f"{name}: a receipt of format version {version}; this package knows {FORMAT_VERSION}. "
            f"Fix: {upgrade_lines()}."
        )
    try:
        receipt = Receipt.model_validate(values)
        receipt.signed_bytes()
    except (ValidationError, UnicodeEncodeError) as error:
        fields = [str(one["loc"][0]) for one in error.errors()] if isinstance(error, ValidationError) else []
        raise ReceiptError(
            f"{name}: a damaged receipt: {', '.join(fields[:3]) or 'a text'} is missing, unknown or "
            "malformed. Fix: take the receipt as the server gave it."
        ) from None
    return receipt


def read_public_key(path: Path) -> Ed25519PublicKey:
    """A server's public key from its PEM file.

    Raises:
        ReceiptError: it cannot be read, or holds something else.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        content = path.read_bytes()
    except OSError as error:
        raise ReceiptError(
            f"{path}: {error.strerror}. Fix: name the server's public key, from /api/key."
        ) from error
    try:
        found = serialization.load_pem_public_key(content)
    except (ValueError, UnsupportedAlgorithm):
        found = None
    if not isinstance(found, Ed25519PublicKey):
        raise ReceiptError(
            f"{path}: not an Ed25519 public key in PEM. Fix: save what the server answers at /api/key."
        )
    return found


def verify(receipt: Receipt, file: Path | None = None, public_key: Ed25519PublicKey | None = None) -> None:
    """Check a receipt, and that a file is the one that it is for.

    Args:
        receipt: from `read_receipt`.
        file: the rank file; None where the receipt alone is checked.
        public_key: the server's, from elsewhere than the receipt; None takes the one inside, which shows only
            that nobody has changed the receipt since whoever holds that key signed it.

    Raises:
        ReceiptError: another key signed it, it was changed, or the file is another one.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    embedded = Ed25519PublicKey.from_public_bytes(bytes.fromhex(receipt.public_key))
    if public_key is not None and public_key.public_bytes_raw() != embedded.public_bytes_raw():
        raise ReceiptError(
            f"receipt {receipt.id}: another key made it: the receipt's is {key_id(embedded)}, the one given "
            f"is {key_id(public_key)}. Fix: check which server it is from, and ask its organisers whether "
            "its key has changed."
        )
    try:
        embedded.verify(bytes.fromhex(receipt.signature), receipt.signed_bytes())
    except InvalidSignature as error:
        raise ReceiptError(
            f"receipt {receipt.id}: the signature does not fit: a value was changed after it was signed. "
            "Fix: take the receipt as the server gave it."
        ) from error
    if receipt.key_id != key_id(embedded):
        raise ReceiptError(
            f"receipt {receipt.id}: its key is called {receipt.key_id} in it, and is {key_id(embedded)}. "
            "Fix: tell the server's organisers: its software names keys in another way."
        )
    if file is not None:
        check_file(receipt, file)


def check_file(receipt: Receipt, file: Path) -> None:
    """Check that a file is the one that a receipt is for.

    Raises:
        ReceiptError: it cannot be read, or has another size or content.
    """
    try:
        with file.open("rb") as handle:
            sha256 = hashlib.file_digest(handle, "sha256").hexdigest()
            size = handle.tell()
    except OSError as error:
        raise ReceiptError(f"{file}: {error.strerror}. Fix: name the file that was sent.") from error
    fix = "Fix: name the file as it was sent, byte for byte (packed, if it was packed)."
    if size != receipt.size:
        raise ReceiptError(
            f"{file}: {size:,} bytes; receipt {receipt.id} is for a file of {receipt.size:,}. {fix}"
        )
    if sha256 != receipt.sha256:
        raise ReceiptError(
            f"{file}: its sha256 is {sha256}; receipt {receipt.id} is for {receipt.sha256}, a file of the "
            f"same size. {fix}"
        )


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key twice")
    return found


def _make(path: Path) -> None:
    """Write a new key, whole or not at all; where another process is faster, its key stays."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    content = Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    beside = path.with_name(f".{path.name}-{os.urandom(4).hex()}")
    try:
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(beside, path)
        except FileExistsError:
            return
    finally:
        beside.unlink(missing_ok=True)
    sync_folder(path.parent)
