"""Each exchange is classified once a checkpoint, across assertions, runs, processes and kills."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from refusal_core.errors import Cancelled
from refusal_core.exchanges import Exchange
from refusal_core.jobs import Job
from refusal_core.labels import LABELS
from refusal_core.perturb import PERTURBATIONS
from refusal_core.scorecard import BesideSuite, read_suite, run
from refusal_core.scorecard.cache import Answer, AnswerCache, default_path, text_digest
from refusal_core.scorecard.readers import CHUNK
from tests.core.scorecard.cases import Stub, score, stub_folder, write_jsonl

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def folder(tmp_path):
    """Two checkpoints, 700 rows of which 100 say the same as others, and a suite that asks for them again and again."""
    stub_folder(tmp_path / "one", b"1")
    stub_folder(tmp_path / "two", b"2")
    rows = [{"id": i, "prompt": "p", "response": f"answer {i % 600}", "label": "compliant"} for i in range(700)]
    write_jsonl(tmp_path / "d.jsonl", rows)
    lines = "".join(f"      - {{type: metric, metric: accuracy, threshold: 0.{i}}}\n" for i in range(1, 10))
    (tmp_path / "suite.yaml").write_text(
        "version: 1\ncheckpoints: [{id: one, path: one}, {id: two, path: two}]\ndatasets: [{id: d, path: d.jsonl}]\n"
        f"tests:\n  - id: t\n    assert:\n{lines}      - {{type: support, min: 1}}\n"
    )
    Stub.asked.clear()
    return tmp_path


def go(folder: Path, cache: AnswerCache | None = None, job: Job | None = None):
    return run(read_suite(folder / "suite.yaml"), BesideSuite(folder), job, cache=cache or AnswerCache(None), load=Stub)


def test_an_exchange_is_classified_once_a_checkpoint(folder):
    go(folder)
    assert sum(Stub.asked) == 2 * 600


def test_the_next_run_classifies_nothing_and_loads_nothing(folder):
    def no_load(name):
        raise AssertionError(f"{name} was loaded")

    path = folder / "cache" / "c.sqlite"
    first = go(folder, AnswerCache(path))
    file = read_suite(folder / "suite.yaml")
    again = run(file, BesideSuite(folder), cache=AnswerCache(path), load=no_load)
    assert again.as_json() == first.as_json()
    (folder / "two" / "model.safetensors").write_bytes(b"other weights")
    Stub.asked.clear()
    go(folder, AnswerCache(path))
    assert sum(Stub.asked) == 600  # of the changed checkpoint alone


def test_a_killed_run_goes_on_from_the_cache(folder):
    """The process ends at once in its second chunk; the next run classifies the rest only."""
    code = f"""
import os
from pathlib import Path
from tests.core.scorecard.cases import Stub
from tests.core.scorecard.test_cache import go
from refusal_core.scorecard.cache import AnswerCache
answer = Stub.predict
def killed(self, exchanges, job=None):
    if Stub.asked:
        os._exit(9)
    return answer(self, exchanges, job)
Stub.predict = killed
go(Path({str(folder)!r}), AnswerCache(Path({str(folder / "c.sqlite")!r})))
"""
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 9
    found = go(folder, AnswerCache(folder / "c.sqlite"))
    assert sum(Stub.asked) == 2 * 600 - CHUNK
    assert found.as_json() == go(folder).as_json()


def test_two_processes_at_once_end_alike_and_leave_a_whole_cache(folder):
    """They wait for one another at the new file's door; a third run finds every answer."""
    code = f"""
import sys, time
from pathlib import Path
from tests.core.scorecard.test_cache import go
from refusal_core.scorecard.cache import AnswerCache
here = Path({str(folder)!r})
Path(here, "ready-" + sys.argv[1]).touch()
while not Path(here, "go").exists():
    time.sleep(0.001)
cache = AnswerCache(here / "c.sqlite")
Path(here, sys.argv[1]).write_text(str(go(here, cache).as_json()))
sys.exit(cache.note or 0)
"""
    running = [subprocess.Popen([sys.executable, "-c", code, name], cwd=ROOT) for name in ("a", "b")]
    while not all((folder / f"ready-{name}").exists() for name in ("a", "b")):
        assert all(process.poll() is None for process in running)
        time.sleep(0.01)
    (folder / "go").touch()
    assert [process.wait() for process in running] == [0, 0]
    found = go(folder, AnswerCache(folder / "c.sqlite"))
    assert Stub.asked == []
    assert {str(found.as_json())} == {(folder / name).read_text() for name in ("a", "b")}
    with sqlite3.connect(folder / "c.sqlite") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("SELECT COUNT(*) FROM answers").fetchone() == (2 * 600,)


def test_a_file_in_which_another_process_writes_is_waited_for(tmp_path):
    other = sqlite3.connect(tmp_path / "c.sqlite", isolation_level=None, check_same_thread=False)
    other.execute("CREATE TABLE theirs (it)")
    other.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.3, other.execute, ["COMMIT"])
    release.start()
    cache = AnswerCache(tmp_path / "c.sqlite")
    release.join()
    assert cache.note == ""
    cache.close()
    other.close()


def test_a_cancelled_run_keeps_what_is_done(folder):
    job = Job()
    job.show = lambda progress: job.cancel.set() if progress.unit == "exchanges" and progress.done >= CHUNK else None
    job.every = 0
    cache = AnswerCache(folder / "c.sqlite")
    with pytest.raises(Cancelled):
        go(folder, cache, job)
    done = sum(Stub.asked)
    Stub.asked.clear()
    go(folder, cache)
    assert done + sum(Stub.asked) <= 2 * 600 + CHUNK


def test_sessions_share_one_file_at_the_same_time(tmp_path):
    texts = [text_digest(Exchange("p", str(i))) for i in range(400)]
    failures = []

    def work(number: int) -> None:
        cache = AnswerCache(tmp_path / "c.sqlite")
        try:
            for at in range(0, 400, 20):
                cache.put("digest", {text: Answer("compliant", (1.0, 0.0), None) for text in texts[at : at + 20]})
            assert len(cache.get("digest", texts)) == 400
            assert not cache.note
        except BaseException as problem:
            failures.append(problem)
        finally:
            cache.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_the_cache_is_bounded_and_holds_no_text(tmp_path):
    cache = AnswerCache(tmp_path / "c.sqlite", most=100)
    exchanges = [Exchange("a secret prompt", f"a secret response {i}") for i in range(250)]
    for exchange in exchanges:
        cache.put("digest", {text_digest(exchange): Answer(None, None, "empty response")})
    kept = cache.get("digest", [text_digest(exchange) for exchange in exchanges])
    assert 90 <= len(kept) <= 100 and text_digest(exchanges[-1]) in kept
    assert cache.get("other", [text_digest(exchanges[-1])]) == {}
    cache.close()
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"secret" not in content


def test_a_broken_cache_costs_time_and_not_the_run(folder):
    (folder / "c.sqlite").write_bytes(b"this is no database" * 100)
    cache = AnswerCache(folder / "c.sqlite")
    found = go(folder, cache)
    assert sum(Stub.asked) == 2 * 600 and "cannot be used" in found.notes[0]


def test_the_setting_says_where(tmp_path):
    assert default_path({"REFUSAL_CACHE": str(tmp_path)}) == tmp_path / "scorecard.sqlite"
    assert default_path({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "refusal" / "scorecard.sqlite"


def test_a_checkpoint_that_cannot_be_loaded_is_a_column_of_errors(folder):
    (folder / "two" / "model.safetensors").unlink()
    found = go(folder)
    assert [c.verdict for c in found.checkpoints] == ["fail", "error"]
    assert "it holds no weights" in found.checkpoints[1].error
    assert {row.verdict for row in found.of("two")} == {"error"}
    (folder / "one" / "model.safetensors").unlink()
    assert go(folder).exit_code == 1


def test_perturbations_and_cases_are_classified_once_too(folder):
    suite = """
version: 1
checkpoints: [{id: one, path: one}]
datasets: [{id: d, path: d.jsonl}]
tests:
  - id: a
    assert: [{type: invariance, perturbation: "*", max_flip_rate: 1.0}, {type: equals, value: compliant}]
  - id: b
    vars: {prompt: p, response: answer 1}
    assert: [{type: equals, value: compliant}]
  - id: filtered
    vars: {prompt: p, response: another answer}
    assert: [{type: equals, value: compliant}]
"""
    rows = [json.loads(line) for line in (folder / "d.jsonl").read_text().splitlines()]
    texts = {r["response"] for r in rows}
    wanted = texts | {p.apply(t) for t in texts for p in PERTURBATIONS.values()}
    score(folder, suite, load=Stub, only="[ab]/*")
    assert sum(Stub.asked) == len(wanted)


def test_only_the_perturbations_that_a_file_lacks_are_run(folder):
    """A checkpoint with a path and predictions: rows and the variant of the file cost nothing."""
    texts = [f"answer {i}" for i in range(60)]
    data = [{"id": i, "prompt": "p", "response": text, "label": "compliant"} for i, text in enumerate(texts)]
    write_jsonl(folder / "d.jsonl", data)
    labels = [LABELS[len(t) % 5] for t in texts]
    rows = [{"id": i, "label": label, "variant": v} for v in ("", "markdown") for i, label in enumerate(labels)]
    write_jsonl(folder / "p.jsonl", rows)
    suite = """
version: 1
checkpoints: [{id: one, path: one, predictions: p.jsonl}]
datasets: [{id: d, path: d.jsonl}]
tests: [{id: t, assert: [{type: invariance, perturbation: [markdown, lower_case, preamble], max_flip_rate: 1.0}]}]
"""
    found = {row.slice["perturbation"]: row for row in score(folder, suite, load=Stub).rows}
    assert found["markdown"].value == 0 and found["lower_case"].value == 0
    moved = [len(PERTURBATIONS["preamble"].apply(t)) % 5 != len(t) % 5 for t in texts]
    assert found["preamble"].value == sum(moved) / 60
    assert sum(Stub.asked) == 2 * 60


@pytest.mark.parametrize("value", [None, b"\xff", "{", "null", "[1]", '["x", "y", 3]', '[["a"], [NaN], null]'])
def test_a_row_that_is_none_of_ours_is_asked_again(tmp_path, value):
    path = tmp_path / "cache.sqlite"
    cache = AnswerCache(path)
    cache.put("checkpoint", {b"text": Answer("compliant", (1.0,))})
    cache.put_labels("checkpoint", ["compliant"], [])
    assert cache.get("checkpoint", [b"text"]) and cache.labels("checkpoint")
    cache.close()
    with sqlite3.connect(path) as connection:
        for table in ("answers", "checkpoints"):
            connection.execute(f"UPDATE {table} SET value = ?", [value])
    connection.close()
    cache = AnswerCache(path)
    assert cache.get("checkpoint", [b"text"]) == {} and cache.labels("checkpoint") is None
    cache.close()
