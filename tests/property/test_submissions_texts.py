"""Whatever comes in as free text: what is accepted is plain, and accepted again as it is."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from submissions.rank_file.texts import file_name, is_link, link, name, plain_text

ANY = st.text(st.characters(), max_size=40)  # halves of characters too
HARMFUL = st.one_of(
    st.characters(
        categories=["Cc", "Cs", "Co", "Cn", "Zl", "Zp"], exclude_characters="\t\n\v\f\r\x1c\x1d\x1e\x1f\x85"
    ),
    st.sampled_from(
        "\u061c\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff"
    ),
    st.sampled_from("\u034f\u115f\u1160\u2800\u3164\uffa0\ufe00\U000e0100\U000e0041\u00ad"),
)
PERSIAN = "می\u200cخواهم"
HINDI = "क्\u200dष"


def accepted(text: str, **options: str) -> str | None:
    try:
        return plain_text(text, 40, **options)  # type: ignore[arg-type]
    except ValueError:
        return None


@pytest.mark.parametrize("breaks", ["refuse", "join"])
@given(text=ANY)
@example(text="a\r\n\tb\n")
@example(text=PERSIAN)
@example(text="\u0344" * 30)  # NFC makes two characters of each
def test_what_is_accepted_is_plain_and_stays_as_it_is(breaks: str, text: str) -> None:
    found = accepted(text, breaks=breaks)
    if found is None:
        return
    assert found == unicodedata.normalize("NFC", found) == found.strip()
    assert len(found) <= 40
    found.encode("utf-8")
    for character in found:
        category = unicodedata.category(character)
        assert category[0] in "LMNPS" or character in " \u200c\u200d"
        assert unicodedata.bidirectional(character) not in (
            "LRE",
            "RLE",
            "LRO",
            "RLO",
            "PDF",
            "LRI",
            "RLI",
            "FSI",
            "PDI",
        )
    assert accepted(found, breaks=breaks) == found


@given(before=st.sampled_from(["a", "ا", "☃"]), harmful=HARMFUL, after=st.sampled_from(["b", "م", "☃"]))
def test_a_harmful_character_is_refused_wherever_it_stands(before: str, harmful: str, after: str) -> None:
    for breaks in ("refuse", "join"):
        assert accepted(before + harmful + after, breaks=breaks) is None


@pytest.mark.parametrize("text", [PERSIAN, HINDI, "\u2714\ufe0f done", "naïve", "日本語", "e\u0301"])
def test_what_languages_need_is_accepted(text: str) -> None:
    assert accepted(text) == unicodedata.normalize("NFC", text)


@pytest.mark.parametrize(
    "text",
    [
        "a\u200cb",
        "a\u200db",
        "\u200cم",
        "م\u200c",
        "د\u200cم",  # dal joins nothing behind it: the joiner would not be seen
        "م\u200dم",
        "म\u200dष",
        "क्\u200d",
        "👩\u200d💻",
        "a\ufe0f",
        "\ufe0f",
    ],
)
def test_a_joiner_that_is_not_seen_is_refused(text: str) -> None:
    assert accepted(text) is None


def test_a_line_is_a_line() -> None:
    assert accepted("a\nb") is None
    assert accepted("a\r\n\tb", breaks="join") == "a b"


@given(text=ANY)
def test_a_name_is_a_plain_text_with_a_letter_or_number(text: str) -> None:
    try:
        found = name(text, 40)
    except ValueError:
        return
    assert found == accepted(text)
    assert not set(found) & set('<>|\\"`${}')
    assert any(character.isalnum() for character in found)
    assert name(found, 40) == found


@given(text=ANY)
@example(text="a/b\\" + PERSIAN)
@example(text="a\u0301\u0302\u0303\u0304")
@example(text="\u0301" * 30)
def test_a_file_name_is_never_refused_and_always_plain(text: str) -> None:
    found = file_name(text, 20, "upload.json")
    assert 0 < len(found) <= 20
    assert not set(found) & set("/\\")
    assert accepted(found) == found


@given(
    host=st.from_regex(r"[a-z0-9]{1,9}(\.[a-z0-9-]{0,5}[a-z])?", fullmatch=True).filter(
        lambda h: ".-" not in h
    ),
    path=st.from_regex(r"(/[a-zA-Z0-9._~%+,;:@!$&()*=-]*)?", fullmatch=True),
    harmful=st.one_of(HARMFUL, st.sampled_from(" \t\n\r\v\u00a0\u3000\"'<>\\^`{|}é\u017f\u212a")),
    data=st.data(),
)
def test_a_link_holds_nothing_but_what_an_address_needs(
    host: str, path: str, harmful: str, data: st.DataObject
) -> None:
    good = f"https://{host}{path}"
    assert link(good, 300) == good
    place = data.draw(st.integers(1, len(good) - 1))
    assert not is_link(good[:place] + harmful + good[place:])
    for other in (
        f"http://{host}{path}",
        f"https://me@{host}{path}",
        f"https://me:secret@{host}{path}",
        f"//{host}",
    ):
        assert not is_link(other)


@pytest.mark.parametrize(
    "text",
    [
        "https://",
        "https:///path",
        "https://?a",
        "https://.org",
        "https://a..org",
        "https://-a.org",
        "https://a.org:0",
        "https://a.org:65536",
        "https://a.org:",
        "https://a.org\n",
        "https://a.org@b.org",
        "https://[::1]/",
        "https://" + "a." * 130 + "org",
        "javascript:alert(1)//https://a.org",
    ],
)
def test_what_only_looks_like_a_link_is_refused(text: str) -> None:
    assert not is_link(text)
