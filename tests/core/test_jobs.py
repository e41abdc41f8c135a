import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refusal_core import jobs
from refusal_core.errors import Cancelled, InputError
from refusal_core.jobs import Job, Journal, Progress, show_seconds

SETTINGS = {"checkpoint": "abc", "batch_size": 8}


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


# Progress


def test_progress_says_rate_and_time_left():
    assert str(Progress(100, 400, "rows", 10.0)) == "100 of 400 rows, 10 rows/s, about 30 s left"
    assert str(Progress(1_200, None, "rows", 0.5)) == "1,200 rows, 2,400 rows/s"
    assert str(Progress(0, 5, "rows", 1.0)) == "0 of 5 rows, 0 rows/s"
    assert str(Progress(3, 4, "rows", 7.0)) == "3 of 4 rows, 0.429 rows/s, about 2 s left"
    assert Progress(0, 5, "rows", 0.0).seconds_left is None
    assert Progress(9, 5, "rows", 1.0).seconds_left == 0


@given(st.integers(0, 10**9), st.floats(1e-3, 1e6))
def test_progress_never_shows_an_exponent(done, seconds):
    rate = str(Progress(done, None, "rows", seconds)).split(", ")[-1]
    if Progress(done, None, "rows", seconds).rate >= 1:
        assert "e" not in rate


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (12.4, "12 s"),
        (89, "89 s"),
        (180, "3 min"),
        (4_800, "80 min"),
        (7_200, "2 h 0 min"),
        (8_400, "2 h 20 min"),
    ],
)
def test_show_seconds(seconds, text):
    assert show_seconds(seconds) == text


@given(st.integers(1, 60), st.lists(st.tuples(st.integers(0, 5), st.floats(0, 1)), max_size=40))
def test_a_job_shows_no_more_often_than_asked_and_always_the_end(total, pieces):
    clock, shown = Clock(), []
    job = Job(show=lambda progress: shown.append((clock.now, progress)), every=0.5, clock=clock)
    job.start(total, "rows")
    for count, seconds in pieces:
        clock.now += seconds
        job.advance(count)
    unfinished = [when for when, progress in shown if progress.done < total]
    assert all(later - earlier >= 0.5 for earlier, later in itertools.pairwise(unfinished))
    done = sum(count for count, _ in pieces)
    assert shown[0][1] == Progress(0, total, "rows", 0.0)
    if done >= total:
        assert shown[-1][1] == Progress(done, total, "rows", clock.now)


def test_a_job_stops_at_the_next_piece():
    job = Job()
    job.start(10, "rows")
    job.advance()
    job.cancel.set()
    with pytest.raises(Cancelled):
        job.advance()
    with pytest.raises(Cancelled):
        job.check()


# Journal


PIECES = st.lists(
    st.dictionaries(st.text(max_size=5), st.text(st.characters(codec="utf-8") | st.just("\ud83d")) | st.integers()),
    max_size=6,
)


def finished(path, settings=SETTINGS):
    return list(Journal(path, settings).done())


def write(path, pieces):
    with Journal(path, SETTINGS) as journal:
        for piece in pieces:
            journal.add(piece)


@given(PIECES, PIECES)
def test_a_journal_goes_on_where_it_was(tmp_path_factory, first, second):
    path = tmp_path_factory.getbasetemp() / "going-on.jsonl"
    Journal(path, SETTINGS).delete()
    assert finished(path) == []
    write(path, first)
    assert finished(path) == first
    write(path, second)
    assert finished(path) == first + second
    Journal(path, SETTINGS).delete()
    assert not path.exists()


@given(PIECES, st.integers(0, 2_000))
def test_a_journal_cut_anywhere_keeps_every_whole_piece(tmp_path_factory, pieces, cut):
    path = tmp_path_factory.getbasetemp() / "cut.jsonl"
    Journal(path, SETTINGS).delete()
    write(path, pieces)
    whole = path.read_bytes()
    cut = min(cut, len(whole))
    path.write_bytes(whole[:cut])
    kept = pieces[: max(whole[:cut].count(b"\n") - 1, 0)]
    assert finished(path) == kept
    write(path, [{"after": 1}])
    assert finished(path) == [*kept, {"after": 1}]
    assert all(json.loads(line) is not None for line in path.read_text().splitlines())


def test_a_torn_line_in_the_middle_ends_what_is_believed(tmp_path):
    path = tmp_path / "j"
    write(path, [{"n": 1}, {"n": 2}])
    path.write_bytes(path.read_bytes().replace(b'{"n": 1}', b"\0\0\0"))
    assert finished(path) == []
    write(path, [{"n": 3}])
    assert finished(path) == [{"n": 3}]


@pytest.mark.parametrize(
    "content",
    [b'{"batch_size": 9, "checkpoint": "abc"}\n{"n": 1}\n', b"my notes\n", b"my notes", b"\n", b"[1]\n", b"\xff\n"],
)
def test_a_journal_of_other_settings_or_another_file_is_refused_and_kept(tmp_path, content):
    path = tmp_path / "j.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"^j\.jsonl: the unfinished work there was begun with other settings"):
        finished(path)
    with pytest.raises(InputError), Journal(path, SETTINGS):
        pytest.fail("work was begun")
    assert path.read_bytes() == content


def test_settings_are_compared_by_content(tmp_path):
    path = tmp_path / "j"
    write(path, [{"n": 1}])
    assert finished(path, {"batch_size": 8, "checkpoint": "abc"}) == [{"n": 1}]
    write_tuple = Journal(tmp_path / "k", {"labels": ("a", "b")})
    with write_tuple:
        write_tuple.add({"n": 1})
    assert finished(tmp_path / "k", {"labels": ["a", "b"]}) == [{"n": 1}]


def test_nan_is_refused_and_leaves_the_journal_whole(tmp_path):
    path = tmp_path / "j"
    with Journal(path, SETTINGS) as journal:
        journal.add({"n": 1})
        with pytest.raises(ValueError):
            journal.add({"n": float("nan")})
    assert finished(path) == [{"n": 1}]


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL")
def test_a_killed_job_has_all_it_added(tmp_path):
    code = """
import os, signal, sys
from refusal_core.jobs import Journal
with Journal(sys.argv[1], {"a": 1}) as journal:
    for n in range(5):
        journal.add({"n": n})
    os.kill(os.getpid(), signal.SIGKILL)
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(jobs.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "j")], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    assert finished(tmp_path / "j", {"a": 1}) == [{"n": n} for n in range(5)]
