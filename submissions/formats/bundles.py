"""Bundles, which answer a suite with one rank file a member, and rank files that are objects already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cir_metrics.errors import did_you_mean
from submissions.formats import native
from submissions.formats.native import ReaderContext, UncheckedFile, read_rankings
from submissions.rank_file.benchmarks import Benchmarks
from submissions.rank_file.findings import MAX_EXAMPLES, Findings, json_type, shown
from submissions.rank_file.model import BUNDLE, NATIVE, RankBundle, RankFile

if TYPE_CHECKING:
    from cir_datasets.registry.suites import Suite

_ONE_EACH = "put one rank file a member into the bundle, no other, then run  cir validate {file}"
_KEYS = ("format", "format_version", "suite", "runs")


def taken_apart(
    bundle: RankBundle | Mapping[str, Any], context: ReaderContext
) -> tuple[Suite | None, list[tuple[RankFile | Mapping[str, Any] | None, ReaderContext]]]:
    """The suite and the runs of a bundle, each with what its reader gets; findings where these do not fit.

    Args:
        bundle: an object, or the value of a file.
        context: of the file.

    Returns:
        The suite, or None where there is none; runs only where they are of its members, and None in the place
        of a run that is a bundle itself.
    """
    findings = context.findings
    if isinstance(bundle, RankBundle):
        suite_id, runs, members = bundle.suite, list[Any](bundle.runs), [run.benchmark for run in bundle.runs]
    elif _is_sound(bundle, findings):
        suite_id, runs = bundle["suite"], bundle["runs"]
        members = [run.get("benchmark") for run in runs]
    else:
        return None, []
    suite = _suite(suite_id, context.benchmarks, findings)
    if suite is None or not _members_fit(members, suite, findings):
        return suite, []
    taken: list[tuple[Any, ReaderContext]] = []
    for run, member in zip(runs, members, strict=True):
        printed = shown(member)[1:-1]
        own = Findings(findings.file, printed, member=printed)
        nested = isinstance(run, dict) and run.get("format") == BUNDLE
        if nested:
            own.add("wrong-format", "a bundle cannot hold another bundle.")
        reader = ReaderContext(own, context.benchmarks, None, "", context.budget)
        taken.append((None if nested else run, reader))
    return suite, taken


def of_object(rank_file: RankFile, context: ReaderContext) -> UncheckedFile | None:
    """What would be read of an object; None with a finding where its benchmark is wrong."""
    header = {"benchmark": rank_file.benchmark, "benchmark_version": rank_file.benchmark_version}
    spec = native.read_benchmark(header, context)
    if spec is None:
        return None
    version = native.read_benchmark_version(header, spec, context.findings)
    subset, answers, of_subset = rank_file.subset_rankings, None, None
    if rank_file.rankings or subset is None or rank_file.format == NATIVE:
        answers = read_rankings(rank_file.rankings, spec, context)
    if subset is not None:
        of_subset = read_rankings(subset, spec, context, section="subset_rankings")
    return UncheckedFile(spec, version, rank_file.method, answers, of_subset, rank_file.format)


def refuse_single(value: Any, suite_id: str, findings: Findings) -> None:
    """Note that one rank file, an object or what a file holds, stands where a bundle should."""
    message = f"{suite_id} is a suite, which is answered by a bundle of one rank file a member"
    named = value.get("benchmark") if isinstance(value, dict) else None
    named = named if isinstance(named, str) else None
    message += "." if named is None else f"; this file answers {shown(named)} alone."
    fix = "pass a RankBundle"
    if not isinstance(value, RankFile):
        join = f"cir convert FILE... --to native --benchmark {suite_id} --out bundle.json"
        fix = f"join one rank file a member:  {join}"
    findings.add("wrong-benchmark", message, value=named, fix=fix)


def _is_sound(document: Mapping[str, Any], findings: Findings) -> bool:
    """Whether a document names a suite and holds a list of objects; noted."""
    if "format_version" in document and not native.is_version(document, findings):
        return False
    native.note_unknown(document, _KEYS, findings)
    suite, runs = document.get("suite"), document.get("runs")
    if "suite" not in document:
        findings.add("wrong-benchmark", 'the key "suite" is missing; a bundle answers a suite.')
    elif not isinstance(suite, str):
        findings.add("bad-type", f'"suite" is {json_type(suite)}; it must be a suite\'s id.')
    if not isinstance(runs, list):
        findings.add("bad-type", f'"runs" is {json_type(runs)}; it must be a list of rank files.')
        return False
    odd = next((place for place, run in enumerate(runs) if not isinstance(run, dict)), None)
    if odd is not None:
        findings.add("bad-type", f"runs[{odd}] is {json_type(runs[odd])}; it must be a rank file.")
    return odd is None and isinstance(suite, str)


def _suite(suite_id: str, benchmarks: Benchmarks, findings: Findings) -> Suite | None:
    from cir_datasets.registry.suites import find_suite, suite_ids

    suite = find_suite(suite_id)
    if suite is None:
        message = f"no suite {shown(suite_id)}; there are {', '.join(suite_ids())}."
    elif benchmarks.expected is not None and benchmarks.expected != suite_id:
        expected = shown(benchmarks.expected)
        message = f"the file answers the suite {shown(suite_id)}, but was checked against {expected}."
    else:
        return suite
    findings.add("wrong-benchmark", message, value=suite_id)
    return None


def _members_fit(members: Sequence[Any], suite: Suite, findings: Findings) -> bool:
    """Whether a bundle's runs are the suite's members, none twice; only then are they looked at.

    A member without a run is a finding too, but hides nothing of the others.
    """
    if len(members) > len(suite.benchmarks):
        findings.add(
            "wrong-benchmark",
            f"the bundle holds {len(members):,} runs; {suite.id} has {len(suite.benchmarks)} members.",
            fix=_ONE_EACH,
        )
        return False
    misfits = suite.fit(members)
    for misfit in misfits:
        if misfit.cause == "nameless":
            message = f"runs[{misfit.number}] names no benchmark; it must be a rank file."
            findings.add("wrong-benchmark", message, cause=misfit.cause, fix=_ONE_EACH)
            continue
        name, fix = str(misfit.name), _ONE_EACH
        if misfit.cause == "twice":
            message = f"{shown(name)} is answered {misfit.number} times."
        elif misfit.cause == "alien":
            message = f"{shown(name)} is not a member of {suite.id}.{did_you_mean(name, suite.benchmarks)}"
        else:
            message = f"the suite's member {shown(name)} has no run."
            fix = "add one rank file for each member, then run  cir validate {file}"
        findings.add("wrong-benchmark", message, cause=misfit.cause, value=name, fix=fix)
    return all(misfit.cause == "missing" for misfit in misfits)


def check_one_method(runs: Sequence[tuple[UncheckedFile | None, Findings]], findings: Findings) -> None:
    """A suite's number is one method's: runs of several would make a mean that nobody reached."""
    methods = (unchecked.method for unchecked, _ in runs if unchecked is not None)
    names = list(dict.fromkeys(method.name for method in methods if method is not None))
    if len(names) > 1:
        listed = ", ".join(shown(name) for name in names[:MAX_EXAMPLES])
        findings.add(
            "bad-metadata",
            f"the runs name {len(names)} methods: {listed}. A bundle is one method's answer.",
            cause="methods",
            fix="write one method.name into every run, then run  cir validate {file}",
        )
