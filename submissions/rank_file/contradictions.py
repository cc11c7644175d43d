"""Words of a method block that contradict each other (`contradictions.yaml`): what no board should show.

Zero-shot and trained on the benchmark's own data cannot both be so, and a method that reads what only the
ground truth knows has to say it in `oracle`. What is declared of the reference contradicts neither the form
beside the file nor the protocol.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from submissions.rank_file.findings import Findings, shown
from submissions.rank_file.words import is_oracle, words_of

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec
    from cir_datasets.rows.benchmark import Benchmark

CODE = "contradiction"
_NAMED = ("name", "backbone", "caption_rule", "aggregation")


@functools.cache
def _data() -> dict[str, Any]:
    from cir_datasets.common.yaml import own_yaml

    found: dict[str, Any] = own_yaml("submissions", "rank_file/contradictions.yaml")
    return found


def check_words(method: Mapping[str, Any], spec: BenchmarkSpec, findings: Findings) -> None:
    """Note what a method block says and contradicts.

    Args:
        method: its fields.
        spec: the benchmark that the method answers.
        findings: collects what is wrong.
    """
    own = next((text for text in method.get("trained_on") or () if _is_own_data(str(text), spec)), None)
    if method.get("zero_shot") is True and own is not None:
        findings.add(
            CODE,
            f'"zero_shot" is true, and "trained_on" names {shown(own)}, which is data of {spec.id} itself.',
            cause="zero-shot",
            value=own,
            # No value of the file: a fix is a template.
            fix='write "zero_shot": false, on a leaderboard without another file; or, if that data was not '
            'used, send a file whose "trained_on" leaves it out',
        )
    named = None if is_oracle(method) else _oracle_words(method)
    if named is not None:
        field, said = named
        words = ", ".join(word for word in words_of("oracle") if word != "none")
        findings.add(
            CODE,
            f'"{field}" says {shown(said)}, and "oracle" does not say that the method reads what only the '
            "ground truth knows.",
            cause="oracle",
            value=said,
            fix=f'write "oracle": one of {words}; or, if it reads no such thing, other words into "{field}"; '
            "on a leaderboard correct these words, without another file",
        )


def check_reference_of_form(in_file: str, in_form: str, findings: Findings) -> None:
    """Refuse a file and a form beside it that declare different things of the reference.

    Args:
        in_file: what the file's method block declares; empty where nothing.
        in_form: what the form declares; empty where nothing.
        findings: collects `reference-contradiction`.
    """
    if in_file and in_form and in_file != in_form:
        findings.add(
            "reference-contradiction",
            f'"reference" in the method block is "{in_file}", and the form beside the file says "{in_form}".',
            cause="form",
            value=in_form,
            fix='leave one of them out: "reference" of the form (--reference of  cir submit), or the one in '
            "the method block",
        )


def check_reference_of_protocol(declared: str, benchmark: Benchmark, findings: Findings) -> None:
    """Refuse a method that declares to have kept the reference where the protocol ranks without it.

    Args:
        declared: `Method.reference`.
        benchmark: what was ranked.
        findings: collects `reference-contradiction`.
    """
    if declared == "kept" and benchmark.reference_use == "removed":
        findings.add(
            "reference-contradiction",
            f'"reference" in the method block is "kept"; {benchmark.id} ranks the gallery without it.',
            value=declared,
            fix='write "reference": "removed" if it was left out, else rank the gallery without it',
        )


def contradictions(method: Mapping[str, Any], spec: BenchmarkSpec, file: str) -> list[dict[str, Any]]:
    """The findings of `check_words` as JSON values; empty where nothing contradicts.

    Args:
        method: the method's fields.
        spec: the benchmark that it answers.
        file: the file's name.
    """
    findings = Findings(file, spec.id)
    check_words(method, spec, findings)
    return [finding.to_dict() for finding in findings.listed()]


def _is_own_data(text: str, spec: BenchmarkSpec) -> bool:
    """Whether a text of `trained_on` names the benchmark's data, or that of the one whose images it ranks."""
    families = {spec.card.name, (spec.config.gallery_from or spec.id).partition("/")[0]}
    known: dict[str, list[str]] = _data()["own_data"]
    spellings = (spelling for name in families for spelling in known.get(name, [re.escape(name)]))
    return _says(text, (rf"(?<![a-z0-9])(?:{spelling}){_data()['follows']}" for spelling in spellings))


def _oracle_words(method: Mapping[str, Any]) -> tuple[str, str] | None:
    """The field, and what it says, by which a method is an oracle; None where no field says so."""
    for field in _NAMED:
        text = str(method.get(field) or "")
        patterns = list(_data()["oracle_words"])
        if not re.search(_data()["made"], text.casefold()):
            patterns += _data()["oracle_words_unless_made"]
        if _says(text, patterns):
            return field, text
    for column in method.get("text_fields") or ():
        if re.search(_data()["oracle_fields"], str(column)):
            return "text_fields", str(column)
    return None


def _says(text: str, patterns: Iterable[str]) -> bool:
    """Whether a text says one of these, and does not deny it."""
    text = unicodedata.normalize("NFKC", text).casefold()
    return any(
        not re.search(_data()["denied"], text[: found.start()])
        and not re.search(_data()["denied_behind"], text[found.end() :])
        for pattern in patterns
        for found in re.finditer(pattern, text)
    )
