"""Prompts through a language model: batches as single prompts, a kill loses one part, the study reads it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from refusal_core import cli
from refusal_core.activations import export_parts
from refusal_core.activations.export import export
from refusal_core.activations.export_settings import ExportSettings, Labels
from refusal_core.activations.load_model import load_language_model
from refusal_core.activations.npz import read_export
from refusal_core.activations.prompts import read_prompts
from refusal_core.classifier.predict import load
from refusal_core.direction.result import Settings
from refusal_core.direction.study import study
from refusal_core.errors import Cancelled, InputError
from refusal_core.jobs import Job
from tests.checkpoints import make_checkpoint
from tests.language_models import WORDS, make_language_model

torch = pytest.importorskip("torch")
N = 30


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Models this small only wait for a second thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def prompt_rows(n: int = N, seed: int = 0) -> list[dict]:
    rng = np.random.default_rng(seed)
    return [
        {
            "id": f"p{seed}-{k}",
            "prompt": " ".join(rng.choice(WORDS, rng.integers(1, 12))),
            "label": k % 2,
            "category": f"topic {k % 6} of {seed}",
        }
        for k in range(n)
    ]


def written(folder, rows, name="prompts.jsonl"):
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module", params=["llama", "gpt2", "qwen2"])
def any_model(request, tmp_path_factory):
    return load_language_model(str(make_language_model(tmp_path_factory.mktemp(request.param), request.param)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_language_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def model(folder):
    return load_language_model(str(folder))


def test_a_batch_gives_what_single_prompts_give(any_model, tmp_path):
    """The hand-made reference: one prompt, no padding, no mask, no positions given."""
    prompts, _ = read_prompts(written(tmp_path, prompt_rows()))
    assert (
        any_model.check_padding([any_model.tokens(p.turns, None, system=None, template=True) for p in prompts]) is None
    )
    singles = []
    for prompt in prompts:
        ids = torch.tensor([any_model.tokenizer(f"<user> {prompt.text} <end> <assistant>")["input_ids"]])
        with torch.no_grad():
            singles.append(any_model._model(ids, output_hidden_states=True).hidden_states)
    for pooling in ("last-token", "mean"):
        found = export(
            prompts, any_model, tmp_path / "o.npz", ExportSettings(layers=None, pooling=pooling, batch_size=7)
        )
        assert found.shape == (N, 3, 16)
        for layer in range(3):
            rows = read_export(tmp_path / "o.npz", layer_index=layer)
            assert rows.metadata["layer"] == str(layer) and rows.metadata["pooling"] == f"{pooling} of the prompt"
            for place, single in enumerate(singles):
                alone = single[layer][0]
                wanted = alone[-1] if pooling == "last-token" else alone.mean(0)
                np.testing.assert_allclose(rows.activations[place], wanted.numpy(), rtol=1e-4, atol=1e-5)


def test_padding_that_changes_the_numbers_is_noticed(folder, tmp_path, monkeypatch):
    model = load_language_model(str(folder))
    right = model._padded
    monkeypatch.setattr(model, "_padded", lambda rows: (right(rows)[0], right(rows)[1] * 0 + 1))  # a mask that lies
    prompts, _ = read_prompts(written(tmp_path, prompt_rows()))
    found = export(prompts, model, tmp_path / "o.npz", ExportSettings(layers=(1, 2)))
    assert "went through it alone" in found.notes[0]
    export(prompts, load_language_model(str(folder)), tmp_path / "good.npz", ExportSettings(layers=(1, 2)))
    for layer in (0, 1):
        one, other = (read_export(tmp_path / f"{n}.npz", layer_index=layer).activations for n in ("o", "good"))
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_a_kill_loses_one_part_and_the_bytes_are_the_same(model, tmp_path, monkeypatch):
    monkeypatch.setattr(export_parts, "CHUNK", 8)
    prompts, _ = read_prompts(written(tmp_path, prompt_rows()))
    settings = ExportSettings(layers=(0, 2), new_tokens=4, dtype="float16")
    export(prompts, model, tmp_path / "whole.npz", settings)

    class Killed(BaseException):
        pass

    calls, vectors = [], type(model).vectors

    def dies(self, rows, *rest):
        calls.append(len(rows))
        if sum(calls) > 20:
            raise Killed
        return vectors(self, rows, *rest)

    monkeypatch.setattr(type(model), "vectors", dies)
    with pytest.raises(Killed):
        export(prompts, model, tmp_path / "o.npz", settings)
    monkeypatch.setattr(type(model), "vectors", vectors)
    with open(tmp_path / "o.npz.unfinished.rows", "ab") as file:
        file.write(b"half a part")  # what a kill in the middle of a write leaves
    with pytest.raises(InputError, match="other settings"):
        export(prompts, model, tmp_path / "o.npz", ExportSettings(layers=(1,)), resume=True)
    seen = []
    job = Job(show=lambda progress: seen.append(progress.done), every=0)
    export(prompts, model, tmp_path / "o.npz", settings, resume=True, job=job)
    assert (tmp_path / "o.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()
    assert seen[1] == 16 and seen[-1] == N  # two parts of eight were done
    assert not list(tmp_path.glob("*.unfinished*"))
    job.cancel.set()
    with pytest.raises(Cancelled):
        export(prompts, model, tmp_path / "x.npz", settings, job=job)
    assert not list(tmp_path.glob("x.npz*"))


def test_what_is_read_and_generated(model, tmp_path):
    rows = prompt_rows(8)
    rows[0]["response"] = "sorry i cannot help with that"
    rows[1] = {**rows[1], "prompt": None, "messages": [
        {"role": "user", "content": "bake bread"}, {"role": "assistant", "content": "sure"}]}  # fmt: skip
    prompts, _ = read_prompts(written(tmp_path, rows))
    settings = ExportSettings(layers=(2,), reads="exchange", pooling="mean-response", new_tokens=5)
    found = export(prompts, model, tmp_path / "o.npz", settings)
    assert found.rows[0]["response"] == "sorry i cannot help with that" and found.rows[1]["response"] == "sure"
    generated = {row["id"]: row["response"] for row in found.rows[2:]}
    assert len(generated) + 2 + len(found.skipped) == 8
    tokens = model.tokens(prompts[0].turns, prompts[0].response, system=None, template=True)
    assert len(tokens.ids) - tokens.prompt == 6
    whole = model.vectors([tokens], [2], "mean")[0, 0] * len(tokens.ids)
    before = (
        model.vectors([type(tokens)(tokens.ids[: tokens.prompt], tokens.prompt)], [2], "mean")[0, 0] * tokens.prompt
    )
    np.testing.assert_allclose(
        read_export(tmp_path / "o.npz").activations[0], (whole - before) / 6, rtol=1e-3, atol=1e-4
    )
    metadata = json.loads(str(np.load(tmp_path / "o.npz")["metadata"]))
    assert metadata["layers"] == [2] and "after the final norm" in metadata["convention"]
    assert metadata["model_sha256"] == model.digest and str(tmp_path) not in json.dumps(metadata)


def test_labels_by_the_classifier(model, tmp_path):
    rows = [{k: v for k, v in row.items() if k != "label"} for row in prompt_rows(10)]
    for row in rows[1:]:
        row["response"] = "sorry, i cannot help with that"
    prompts, _ = read_prompts(written(tmp_path, rows))
    classifier = load(str(make_checkpoint(tmp_path / "classifier")))
    found = export(prompts, model, tmp_path / "o.npz", ExportSettings(layers=(1,)), Labels(classifier))
    assert found.metadata["label_1_means"] == "refused (full + partial refusal)"
    assert str(np.load(tmp_path / "o.npz")["label_means"]) == "refused"
    assert [row.id for row in found.skipped] == ["p0-0"] and "no response" in found.skipped[0].reason
    for row in found.rows:
        assert row["label"] == (row["class"] in ("full_refusal", "partial_refusal"))


def test_the_whole_way_from_prompts_to_a_study(folder, tmp_path, capsys):
    """Two exports by the command, from JSONL and CSV, then the study: two random parts find nothing."""
    train = written(tmp_path, prompt_rows(48))
    test = tmp_path / "test.csv"
    lines = [f"{r['id']};{r['prompt']};{r['category']};{'refused' if r['label'] else 'no'}" for r in prompt_rows(24, 1)]
    test.write_text("id;question;topic;kind\n" + "\n".join(lines))
    command = ["export", "--model", str(folder), "--layers", "1"]
    assert cli.main([*command, "--prompts", str(train), "--output", str(tmp_path / "train.npz")]) == 0
    maps = ["--map", "prompt=question", "--map", "category=topic", "--map", "label=kind", "--positive", "refused"]
    table = tmp_path / "table.jsonl"
    more = ["--table", str(table), "--label-means", "harmful"]
    assert cli.main([*command, *maps, *more, "--prompts", str(test), "--output", str(tmp_path / "test.npz")]) == 0
    said = capsys.readouterr().err
    assert "24 examples of shape [16]" in said and "12 of label 1 (the prompt is harmful), 6 categories" in said
    assert json.loads(table.read_text().splitlines()[0])["id"] == "p1-0"
    found = study(read_export(tmp_path / "train.npz"), read_export(tmp_path / "test.npz"), Settings(repeats=19))
    assert found.split == "categories held out" and found.extraction["train_file"]["layer"] == "1"
    assert folder.name in found.extraction["train_file"]["model"] and not found.test.ties
    assert found.extraction["label_means"] == "harmful"  # said once, to the export


REFUSED = {
    "no category": ({"category": None}, [], "no row has a category"),
    "no label": ({"label": None}, [], "no row has a label"),
    "labels that are not two": ({"label": "odd"}, [], "--positive"),
    "a layer that is not there": ({}, ["--layers", "7"], r"hidden states 0 \(embedding\) to 2"),
    "no list of layers": ({}, ["--layers", "x"], "no list of whole numbers"),
    "the mean of no response": ({}, ["--pooling", "mean-response"], "add --read exchange"),
    "no response to read": ({}, ["--read", "exchange"], "no response, and none is generated"),
    "too long": ({}, ["--max-length", "1"], "tokens long"),
    "a column that is not there": ({}, ["--map", "category=topic"], 'no column "topic"'),
    "another mapping": ({}, ["--map", "nothing"], "maps no column"),
    "labels of responses that are to be of prompts": ({}, ["--classify", "--label-means", "harmful"], "leave one"),
    "no folder to write in": ({}, ["--table", "/none/t.jsonl"], "does not exist"),
    "no such model": ({}, ["--model", "/none/model"], "no such folder"),
    "no prompt": ({"prompt": None}, [], "no row holds a prompt"),
    "an id twice": ({"id": "a"}, [], "stands twice"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case, folder, tmp_path, capsys):
    change, options, sentence = REFUSED[case]
    prompts = written(tmp_path, [{**row, **change} for row in prompt_rows(4)])
    command = ["export", "--model", str(folder), "--layers", "1", "--prompts", str(prompts), *options]
    assert cli.main([*command, "--output", str(tmp_path / "o.npz")]) == 2
    [line] = capsys.readouterr().err.strip().splitlines()
    assert pytest.importorskip("re").search(sentence, line)
    assert [path.name for path in tmp_path.iterdir()] == ["prompts.jsonl"]


def test_models_that_are_refused(tmp_path, folder):
    bare = make_language_model(tmp_path / "bare", template=None)
    prompts, _ = read_prompts(written(tmp_path, prompt_rows(4)))
    with pytest.raises(InputError, match="no chat template"):
        export(prompts, load_language_model(str(bare)), tmp_path / "o.npz", ExportSettings(layers=(1,)))
    export(prompts, load_language_model(str(bare)), tmp_path / "o.npz", ExportSettings(layers=(1,), template=False))
    config = json.loads((bare / "config.json").read_text())
    (bare / "config.json").write_text(json.dumps({**config, "auto_map": {"AutoModelForCausalLM": "x.Y"}}))
    with pytest.raises(InputError, match="code from checkpoints is not run"):
        load_language_model(str(bare))
    (bare / "config.json").write_text(json.dumps(config))
    (bare / "model.safetensors").unlink()
    torch.save({}, bare / "pytorch_model.bin")
    with pytest.raises(InputError, match="no safetensors weights"):
        load_language_model(str(bare))


def test_rows_that_hold_no_prompt_are_named(tmp_path):
    rows = [*prompt_rows(3), {"id": "bad", "prompt": 7}, {"messages": [{"role": "system", "content": "x"}]}]
    prompts, skipped = read_prompts(written(tmp_path, rows))
    assert [row.id for row in skipped] == ["bad", "line 5"] and len(prompts) == 3
    assert "no user turn" in skipped[1].reason
