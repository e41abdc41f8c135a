from pathlib import Path

import pytest

from refusal_core.errors import InputError
from refusal_core.roots import DataRoots
from ui import checkpoints
from ui.checkpoints import FOLDER, HUB, STARTER_CHOICE, TYPED_PATH, choose


@pytest.fixture
def roots(tmp_path) -> DataRoots:
    for name in ("data/runs/checkpoint-9", "data/runs/checkpoint-10", "outside"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "config.json").write_text("{}")
    (tmp_path / "data" / "runs" / "tokenizer_config.json").write_text("{}")
    return DataRoots((tmp_path / "data",))


def test_offers_folders_with_a_config_in_natural_order(roots):
    names = checkpoints.folder_names(roots)
    assert names == ["runs/checkpoint-9", "runs/checkpoint-10"]
    assert checkpoints.offered(names, roots=True, demo=False) == [
        "starter", FOLDER + names[0], FOLDER + names[1], TYPED_PATH, HUB
    ]  # fmt: skip
    assert checkpoints.offered([], roots=False, demo=False) == ["starter", HUB]


def test_a_root_that_is_a_checkpoint_itself(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    roots = DataRoots((tmp_path,))
    [name] = checkpoints.folder_names(roots)
    assert choose(FOLDER + name, "", "", roots, demo=False).folder == tmp_path


def test_folder_and_typed_path_mean_the_same(roots):
    one = choose(FOLDER + "runs/checkpoint-9", "", "", roots, demo=False)
    assert one == choose(TYPED_PATH, " runs/checkpoint-9 ", "", roots, demo=False)
    assert one.kind == "directory" and one.link_name is None and Path(one.name).is_absolute()


@pytest.mark.parametrize(
    "typed", ["../outside", "/etc", "runs/../../outside", "runs/nothing", "runs/tokenizer_config.json"]
)
def test_paths_stay_inside(roots, typed):
    with pytest.raises(InputError):
        choose(TYPED_PATH, typed, "", roots, demo=False)


def test_a_link_out_of_the_root_is_refused(roots, tmp_path):
    (tmp_path / "data" / "out").symlink_to(tmp_path / "outside")
    assert "out" not in checkpoints.folder_names(roots)
    with pytest.raises(InputError):
        choose(TYPED_PATH, "out", "", roots, demo=False)


def test_hub_names(roots, tmp_path, monkeypatch):
    assert choose(HUB, "", " ", roots, demo=False) is None
    assert choose(HUB, "", "owner/name", roots, demo=False).name == "owner/name@main"
    assert choose(HUB, "", "owner/name@v1", roots, demo=False).link_name == "owner/name@v1"
    for wrong in ("name", "../up/name", "a/b/c", "https://host/a/b", "owner/name@"):
        with pytest.raises(InputError):
            choose(HUB, "", wrong, roots, demo=False)


def test_a_hub_name_never_opens_a_folder(roots, tmp_path, monkeypatch):
    """`load` takes a folder of that name first, and it could lie outside the data roots."""
    monkeypatch.chdir(tmp_path)
    Path("owner/name@main").mkdir(parents=True)
    with pytest.raises(InputError):
        choose(HUB, "", "owner/name", roots, demo=False)


def test_demo_is_the_starter_whatever_is_set(roots):
    assert choose(HUB, "/etc", "owner/name", roots, demo=True) == STARTER_CHOICE
    assert checkpoints.offered(["x"], roots=True, demo=True) == ["starter"]


@pytest.mark.parametrize(("value", "demo"), [("1", True), ("true", True), ("", False), ("0", False), ("no", False)])
def test_demo_setting(value, demo):
    assert checkpoints.in_demo({"REFUSAL_DEMO": value}) is demo
    assert not checkpoints.in_demo({})


def test_stamp_changes_when_the_weights_do(tiny_checkpoint, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in tiny_checkpoint.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    choice = checkpoints.Choice(str(copy), "copy", "directory")
    before = choice.stamp()
    assert {name for name, _, _ in before} >= {"config.json", "model.safetensors", "tokenizer.json"}
    (copy / "notes.md").write_text("not read by loading")
    assert choice.stamp() == before
    (copy / "model.safetensors").write_bytes(b"other")
    assert choice.stamp() != before
