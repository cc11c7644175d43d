"""The queue on real databases: fair, counted before it begins, taken back from the dead."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from leaderboard.errors import ConflictError
from leaderboard.queue.jobs import BEATS_A_LEASE, Jobs
from leaderboard.store import Store, schema
from leaderboard.store.submission import Submission

MESSAGE = "The server could not judge this file."


def received(store: Store, name: str, owner: str = "") -> Submission:
    found, _ = store.receive(
        board="shapes/val", sha256=name.ljust(64, "0"), size=1, file_name=name, owner=owner
    )
    return found


def taken_back(jobs: Jobs) -> list[str]:
    """The ids of what a worker takes back in a lease, at its end."""
    looks = [jobs.take_back() for _ in range(BEATS_A_LEASE + 1)]
    assert not any(looks[:-1])
    return looks[-1]


def forget_delays(store: Store) -> None:
    with store.database.write() as connection:
        connection.execute(sa.text("UPDATE jobs SET not_before = NULL"))


def taken(jobs: Jobs) -> list[str]:
    names = []
    while (job := jobs.take()) is not None:
        names.append(job.submission.file_name)
    return names


def test_first_come_first_served(store: Store) -> None:
    for name in "abc":
        received(store, name)
    assert taken(Jobs(store, "w")) == ["a", "b", "c"]


def test_owners_take_turns(store: Store) -> None:
    for name in ("a1", "a2", "a3"):
        received(store, name, owner="ada")
    received(store, "b1", owner="bob")
    received(store, "c1", owner="cy")
    assert taken(Jobs(store, "w")) == ["a1", "b1", "c1", "a2", "a3"]


def test_a_finished_job_is_gone(store: Store) -> None:
    received(store, "a")
    jobs = Jobs(store, "w")
    job = jobs.take()
    assert job is not None
    done = jobs.finish(job, [("rejected", {"findings": []})])
    assert done.state == "rejected"
    assert jobs.take() is None


def test_two_workers_never_take_the_same_job(store: Store) -> None:
    for number in range(20):
        received(store, f"f{number:02d}")
    names: list[str] = []
    threads = [
        threading.Thread(target=lambda at=at: names.extend(taken(Jobs(store, f"w{at}")))) for at in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(names) == [f"f{number:02d}" for number in range(20)]


def test_a_file_that_crashes_its_judge_twice_is_tried_no_more(store: Store) -> None:
    submission = received(store, "a")
    jobs = Jobs(store, "w")
    first = jobs.take()
    assert first is not None
    assert jobs.crash(first, MESSAGE) is None
    second = jobs.take()
    assert second.crashes == 1
    ended = jobs.crash(second, MESSAGE)
    assert (ended.id, ended.state) == (submission.id, "failed")
    assert ended.events[-1].payload == {"message": MESSAGE, "crashes": 2}
    assert jobs.take() is None


def test_an_organiser_can_have_it_judged_again(store: Store) -> None:
    submission = received(store, "a")
    jobs = Jobs(store, "w")
    for _ in range(2):
        job = jobs.take()
        assert job is not None
        jobs.crash(job, MESSAGE)
    ended = store.submission(submission.id)
    assert ended is not None
    again = store.append(ended, [("rerun", {})], by="organiser")
    assert again.state == "received"
    assert taken(jobs) == ["a"]


def test_a_dead_worker_loses_its_job_and_cannot_finish_it(store: Store) -> None:
    received(store, "a")
    dead, alive = Jobs(store, "dead"), Jobs(store, "alive")
    dead.beat({})
    job = dead.take()
    assert alive.take() is None
    assert taken_back(alive) == [job.submission.id]
    assert alive.take() is None
    forget_delays(store)
    again = alive.take()
    assert again.crashes == 0
    with pytest.raises(ConflictError, match="another worker has taken it over"):
        dead.finish(job, [("rejected", {})])
    assert alive.finish(again, [("rejected", {})]).state == "rejected"


def test_a_worker_that_beats_keeps_its_job(store: Store) -> None:
    received(store, "a")
    slow, other = Jobs(store, "slow"), Jobs(store, "other")
    slow.beat({})
    job = slow.take()
    assert job is not None
    for look in range(3 * BEATS_A_LEASE):
        if look % BEATS_A_LEASE == 0:
            slow.beat({})
        assert other.take_back() == []
    assert slow.finish(job, [("rejected", {})]).finished


def test_deaths_of_workers_are_no_evidence_against_their_files(store: Store) -> None:
    names = [f"f{number}" for number in range(8)]
    for name in names:
        received(store, name)
    for death in range(3):
        dying = [Jobs(store, f"{number} of {death}") for number in range(3)]
        for one in dying:
            one.beat({})
        assert len({job.submission.file_name for one in dying if (job := one.take())}) == 3
        assert len(taken_back(Jobs(store, "alive"))) == 3
        forget_delays(store)
    assert taken(Jobs(store, "alive")) == names
    with store.database.read() as connection:
        assert connection.execute(sa.text("SELECT max(crashes) FROM jobs")).scalar() == 0


def test_what_takes_its_workers_along_waits_longer_each_time(store: Store) -> None:
    received(store, "deadly")
    waits = []
    for death in range(3):
        assert Jobs(store, f"w{death}").take() is not None
        before = datetime.now(UTC).replace(tzinfo=None)
        assert len(taken_back(Jobs(store, "alive"))) == 1
        with store.database.read() as connection:
            (later,) = connection.execute(sa.select(schema.jobs.c.not_before)).one()
        waits.append((later.replace(tzinfo=None) - before).total_seconds())
        forget_delays(store)
    assert waits == sorted(waits)
    assert waits[-1] >= 5


def test_the_owner_of_a_job_that_is_taken_back_is_served_first(store: Store) -> None:
    received(store, "a", owner="ada")
    assert Jobs(store, "dead").take() is not None
    for number in range(3):
        received(store, f"n{number}", owner=f"new {number}")
    alive = Jobs(store, "alive")
    taken_back(alive)
    forget_delays(store)
    assert taken(alive) == ["a", "n0", "n1", "n2"]


def test_two_workers_take_a_job_back_once(store: Store) -> None:
    received(store, "a")
    assert Jobs(store, "dead").take() is not None
    both = [Jobs(store, name) for name in "vw"]
    for one in both:
        one.beat({})
    for _ in range(BEATS_A_LEASE):
        assert [one.take_back() for one in both] == [[], []]
    with ThreadPoolExecutor(2) as pool:
        assert sorted(map(len, pool.map(Jobs.take_back, both))) == [0, 1]


def test_a_clock_that_jumped_leaves_no_worker_of_another_year(store: Store) -> None:
    jumped = datetime.now(UTC) + timedelta(days=365)
    with store.database.write() as connection:
        connection.execute(schema.workers.insert().values(id="2027", beat=7, seen_at=jumped, about={}))
    assert taken_back(Jobs(store, "alive")) == []
    assert store.condition()["workers"] == []


def test_a_worker_that_leaves_gives_its_jobs_back_without_a_crash(store: Store) -> None:
    received(store, "a")
    jobs = Jobs(store, "w")
    jobs.beat({})
    assert jobs.take() is not None
    jobs.leave()
    again = Jobs(store, "v").take()
    assert again.crashes == 0


def test_a_passing_reason_delays_ever_longer_and_ends_nothing(store: Store) -> None:
    received(store, "a")
    jobs = Jobs(store, "w")
    waits = []
    for _ in range(3):
        job = jobs.take()
        assert job is not None
        waits.append(jobs.delay(job))
        assert jobs.take() is None
        forget_delays(store)
    assert waits == sorted(set(waits))


def test_a_clock_that_was_set_back_keeps_no_job_waiting(store: Store) -> None:
    received(store, "a")
    jobs = Jobs(store, "w")
    job = jobs.take()
    assert job is not None
    jobs.delay(job)
    with store.database.write() as connection:
        later = {"later": (datetime.now(UTC) + timedelta(days=400)).replace(tzinfo=None)}
        connection.execute(sa.text("UPDATE jobs SET not_before = :later"), later)
    assert taken(jobs) == ["a"]


def test_one_submission_can_be_asked_for(store: Store) -> None:
    received(store, "a")
    wanted = received(store, "b")
    jobs = Jobs(store, "w")
    job = jobs.take(wanted.id)
    assert job.submission.file_name == "b"
    assert jobs.take(wanted.id) is None
