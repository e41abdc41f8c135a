"""Checkpoints by hub name: against a hub that this test serves, one that is not there, and one that never answers."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from refusal_core import limits
from refusal_core.classifier import hub, load
from refusal_core.errors import InputError, RefusalCoreError, WorkError
from refusal_core.exchanges import Exchange
from tests.checkpoints import make_checkpoint
from tests.fake_hub import MAIN, OLD, serve

ROOT = Path(__file__).resolve().parents[2]
PAIR = Exchange("what is lima", "sorry i cannot help with that")


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, bytes]:
    """A tiny ModernBERT as it lies in a repository, with what such repositories hold besides."""
    folder = make_checkpoint(tmp_path_factory.mktemp("hub") / "it", architecture="modernbert")
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    unwanted = [
        "pytorch_model.bin", "training_args.bin", "modeling.py", "README.md", ".gitattributes", "optimizer.pt",
        "chat_template.jinja", "checkpoint-5/model.safetensors", "onnx/model.onnx", "tokenizer_code.py",
    ]  # fmt: skip
    return found | dict.fromkeys(unwanted, b"unwanted")


@pytest.fixture
def served(monkeypatch, tmp_path):
    """A running FakeHub that the client takes for the hub, and an empty cache."""
    with serve() as (fake, address):
        _point_client_at(monkeypatch, address, tmp_path / "cache")
        yield fake


def _point_client_at(monkeypatch, address: str, cache: Path) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + "/{repo_id}/resolve/{revision}/{filename}")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_TOKEN", "")


def sentence(kind: type[RefusalCoreError], name: str) -> str:
    with pytest.raises(kind) as caught:
        load(name)
    text = str(caught.value)
    assert "\n" not in text and text.endswith(".") and name.split("@")[0] in text
    return text


# A hub that answers


def test_loads_by_name_and_fetches_nothing_else(served, files):
    served.commits["owner/name"] = {MAIN: files}
    classifier = load("owner/name")
    assert (classifier.info.kind, classifier.info.name, classifier.info.revision) == ("hub", "owner/name", MAIN)
    assert classifier.info.notes == ()
    assert classifier.predict([PAIR])[0].label
    assert sorted(served.handed_out) == ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]


def test_the_same_files_have_the_same_digest_here_and_there(served, files, tmp_path):
    served.commits["owner/name"] = {MAIN: files}
    folder = tmp_path / "copy"
    folder.mkdir()
    for name, content in files.items():
        if "/" not in name:
            (folder / name).write_bytes(content)
    assert load("owner/name").info.digest == load(str(folder)).info.digest


@pytest.mark.parametrize("revision", ["old", OLD])
def test_revision_is_honoured(served, files, tmp_path, revision):
    other = make_checkpoint(tmp_path / "other", architecture="modernbert", seed=1)
    served.commits["owner/name"] = {
        MAIN: files,
        OLD: files | {"model.safetensors": (other / "model.safetensors").read_bytes()},
    }
    main, old = load("owner/name"), load(f"owner/name@{revision}")
    assert (main.info.revision, old.info.revision) == (MAIN, OLD)
    assert main.predict([PAIR])[0].probabilities != old.predict([PAIR])[0].probabilities


def test_the_cache_answers_when_the_hub_is_gone(served, files):
    served.commits["owner/name"] = {MAIN: files, OLD: files}
    first = load("owner/name")
    load("owner/name@old")
    served.status = 503
    for name, commit in (("owner/name", MAIN), ("owner/name@old", OLD), (f"owner/name@{MAIN}", MAIN)):
        again = load(name)
        assert again.info.revision == commit and "local cache" in again.info.notes[0]
    assert again.info.digest == first.info.digest
    assert "HTTP status 503" in sentence(WorkError, "owner/other")
    assert "HTTP status 503" in sentence(WorkError, "owner/name@never")


def test_an_unfinished_download_is_not_taken_from_the_cache(served, files):
    served.commits["owner/name"] = {MAIN: files}
    served.broken.add("tokenizer_config.json")
    assert "broke off" in sentence(WorkError, "owner/name")
    served.status = 503
    assert "no copy of it is in the local cache" in sentence(WorkError, "owner/name")
    served.status = 200
    served.broken.clear()
    assert load("owner/name").info.revision == MAIN
    assert sorted(served.handed_out) == sorted(set(served.handed_out))  # what was there is not fetched again


def test_a_branch_that_moves_meanwhile(served, files, monkeypatch):
    served.commits["owner/name"] = {MAIN: files, OLD: files}

    def move(*args):
        served.names["main"] = OLD
        return MAIN, ["tokenizer.json", "config.json"]

    monkeypatch.setattr(hub, "_ask", move)
    assert "changed on the hub" in sentence(WorkError, "owner/name")


def test_unknown_repository_and_mistyped_folder(served):
    for name in ("owner/name", "model/chekpoint-5", "owner/a--b", "owner/" + "x" * 97, "owner/name.git"):
        text = sentence(InputError, name)
        assert "the hub knows no such model" in text and "no folder of that name here" in text


def test_unknown_revision(served, files):
    served.commits["owner/name"] = {MAIN: files}
    assert "there is no revision v9" in sentence(InputError, "owner/name@v9")


def test_gated_repository(served, files):
    served.commits["owner/name"] = {MAIN: files}
    served.gated.add("owner/name")
    assert "gated" in sentence(InputError, "owner/name")


def test_no_safetensors(served, files):
    served.commits["owner/name"] = {MAIN: {n: c for n, c in files.items() if "safetensors" not in n}}
    assert "no safetensors weights" in sentence(InputError, "owner/name")
    served.commits["owner/name"] = {MAIN: {n: c for n, c in files.items() if n != "model.safetensors"}}
    assert "holds no weights (model.safetensors)" in sentence(InputError, "owner/name")
    assert "model.safetensors" not in served.handed_out
    served.commits["owner/name"] = {MAIN: {n: c for n, c in files.items() if n != "config.json"}}
    assert "it has no config.json" in sentence(InputError, "owner/name")


def test_too_large_a_checkpoint_is_not_downloaded(served, files, monkeypatch):
    served.commits["owner/name"] = {MAIN: files}
    monkeypatch.setattr(limits, "CHECKPOINT_BYTES", 50_000)
    assert "the checkpoint is 1" in sentence(InputError, "owner/name")
    assert served.handed_out == []


def test_adapter_is_named_with_its_base_and_not_downloaded(served, files):
    adapter = {
        "adapter_config.json": b'{"base_model_name_or_path": "big/base"}',
        "adapter_model.safetensors": b"x" * 99,
    }
    served.commits["owner/name"] = {MAIN: adapter | {"tokenizer.json": files["tokenizer.json"]}}
    assert "PEFT adapter for big/base" in sentence(InputError, "owner/name")
    assert "adapter_model.safetensors" not in served.handed_out


def test_broken_download_is_one_sentence(served, files, monkeypatch):
    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    import huggingface_hub

    served.commits["owner/name"] = {MAIN: files}
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", fail)
    assert "broke off" in sentence(WorkError, "owner/name")


def test_a_local_folder_goes_before_the_hub(served, files, tmp_path, monkeypatch):
    shutil.copytree(make_checkpoint(tmp_path / "made"), tmp_path / "owner" / "name")
    monkeypatch.chdir(tmp_path)
    assert load("owner/name").info.kind == "directory"


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 502])
def test_every_other_answer_is_one_sentence(served, status):
    served.status = status
    with pytest.raises(RefusalCoreError) as caught:
        load("owner/name")
    assert "\n" not in str(caught.value)


NAMES = [
    ("owner/name", ("owner/name", None)),
    ("o1/n.a-m_e", ("o1/n.a-m_e", None)),
    ("owner/name@main", ("owner/name", "main")),
    ("owner/name@refs/pr/1", ("owner/name", "refs/pr/1")),
    ("owner/name@v1.0", ("owner/name", "v1.0")),
    *((name, None) for name in (
        "name", "owner/", "/name", "a/b/c", "./a/b", "../b", "~/b", "C:/b", "owner/name@", "owner/name@../../x",
        "owner/name@a/../b", "owner/name@/x", "owner/na me", "owner/name@a b", "owner/name\n", "ow@ner/name", "ö/name",
        "owner\\name", "https://huggingface.co/owner/name", "-owner/name",
    )),
]  # fmt: skip


@pytest.mark.parametrize(("name", "parsed"), NAMES)
def test_what_is_a_hub_name(name, parsed):
    assert hub.parse_name(name) == parsed


# No hub at all


def _run(code: str, **environment: str) -> tuple[str, float]:
    """Output and seconds of `code` in a process of its own, its end included."""
    begun = time.monotonic()
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "TRANSFORMERS_"))} | environment
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=variables, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout, time.monotonic() - begun


SAY = """
from refusal_core.errors import WorkError
from refusal_core.classifier.hub import fetch
from refusal_core import limits
{}
try:
    fetch("owner/name", None)
except WorkError as error:
    print(error)
"""


def _is_one_sentence(text: str, why: str, mend: str = "connect to the network") -> bool:
    assert text.count("\n") == 1 and text.endswith(".\n"), text
    assert f"did not hand out owner/name ({why})" in text
    return mend in text and "checkpoint folder" in text and "starter" in text


def test_a_port_that_refuses(tmp_path):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
        text, seconds = _run(SAY.format(""), HF_ENDPOINT=address, HF_HOME=str(tmp_path))
    assert _is_one_sentence(text, "no connection") and seconds < 10


def test_offline_setting(tmp_path):
    text, seconds = _run(SAY.format(""), HF_HUB_OFFLINE="1", HF_HOME=str(tmp_path))
    assert _is_one_sentence(text, "HF_HUB_OFFLINE is set", "unset it") and seconds < 10


def test_a_name_server_that_hangs_holds_up_neither_answer_nor_exit(tmp_path):
    hang = "import socket, time; socket.getaddrinfo = lambda *a, **k: time.sleep(60); limits.HUB_SECONDS = 2"
    text, seconds = _run(SAY.format(hang), HF_ENDPOINT="http://hub.invalid", HF_HOME=str(tmp_path))
    assert _is_one_sentence(text, "no answer in time") and seconds < 10


@pytest.mark.parametrize("behaviour", ["silent", "trickle"])
def test_a_server_that_never_answers(monkeypatch, tmp_path, behaviour):
    def accept() -> None:
        while True:
            try:
                connection, _ = black_hole.accept()
            except OSError:
                return
            kept.append(connection)
            if behaviour == "trickle":
                threading.Thread(target=trickle, args=(connection,), daemon=True).start()

    def trickle(connection: socket.socket) -> None:
        try:
            connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            while True:
                connection.sendall(b"a")
                time.sleep(0.1)
        except OSError:
            pass

    kept: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as black_hole:
        threading.Thread(target=accept, daemon=True).start()
        _point_client_at(monkeypatch, f"http://127.0.0.1:{black_hole.getsockname()[1]}", tmp_path)
        monkeypatch.setattr(limits, "HUB_SECONDS", 2)
        begun = time.monotonic()
        text = sentence(WorkError, "owner/name")
        assert time.monotonic() - begun < 2.5
        assert "no answer in time" in text
        for connection in kept:
            connection.close()


def test_the_real_limit_is_ten_seconds():
    assert hub._patience() + 1.5 < limits.HUB_SECONDS <= 10
