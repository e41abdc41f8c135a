import os
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refusal_core import limits, roots
from refusal_core.errors import InputError
from refusal_core.roots import DataRoots, natural_key

posix = pytest.mark.skipif(os.name == "nt", reason="symbolic links")
OUTSIDE = "it is not below a data root"


@pytest.fixture
def tree(tmp_path):
    """A root with files, a folder outside it with a secret."""
    for name in (
        "data/a.jsonl",
        "data/runs/checkpoint-10/trainer_state.json",
        "data/runs/checkpoint-9/trainer_state.json",
        "data/runs/B.JSONL",
        "data/.hidden/x.jsonl",
        "data/.x.jsonl",
        "outside/secret.jsonl",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


@pytest.fixture
def one(tree):
    return DataRoots((tree / "data",))


def shown(found):
    return [name for name, _ in found]


# Which folders


def test_roots_from_the_setting(tree, monkeypatch):
    monkeypatch.chdir(tree)
    env = {"REFUSAL_DATA": os.pathsep.join(["", str(tree / "data"), "outside", " ", str(tree / "data")])}
    assert DataRoots.from_environment(env).roots == (tree / "data", tree / "outside")


@pytest.mark.parametrize("env", [{}, {"REFUSAL_DATA": ""}, {"REFUSAL_DATA": os.pathsep + " "}])
def test_without_the_setting_the_folder_data_if_there_is_one(tree, monkeypatch, env):
    monkeypatch.chdir(tree)
    assert DataRoots.from_environment(env).roots == (tree / "data",)
    monkeypatch.chdir(tree / "outside")
    assert DataRoots.from_environment(env).roots == ()


def test_a_root_that_is_not_there_is_an_error(tree):
    for wrong in (tree / "none", tree / "data" / "a.jsonl", "~"):
        with pytest.raises(InputError, match="^REFUSAL_DATA: there is no folder"):
            DataRoots.from_environment({"REFUSAL_DATA": f"{tree / 'data'}{os.pathsep}{wrong}"})


def test_no_roots_resolve_nothing_and_list_nothing():
    with pytest.raises(InputError, match="no data root is set; set REFUSAL_DATA"):
        DataRoots(()).resolve("a.jsonl")
    assert DataRoots(()).files([""]) == []


# What a typed path leads to


def test_paths_inside(tree, one):
    file = (tree / "data" / "a.jsonl").resolve()
    for typed in ("a.jsonl", "./a.jsonl", ".//a.jsonl", str(file)):
        assert one.resolve(typed) == file
    assert one.resolve(".") == (tree / "data").resolve()
    assert one.resolve("runs") == (tree / "data" / "runs").resolve()


@pytest.mark.parametrize("there", [True, False])
def test_paths_outside_are_refused_alike_whether_they_exist_or_not(tree, one, there):
    name = "secret.jsonl" if there else "none.jsonl"
    for typed in (str(tree / "outside" / name), str(tree / "data2" / name), os.path.abspath(os.sep)):
        with pytest.raises(InputError) as error:
            one.resolve(typed)
        assert error.value.what == OUTSIDE


def test_the_file_system_is_not_asked_about_paths_outside(tree, one, monkeypatch):
    realpath, asked = os.path.realpath, []
    monkeypatch.setattr(os.path, "realpath", lambda path: asked.append(str(path)) or realpath(path))
    with pytest.raises(InputError):
        one.resolve(str(tree / "outside" / "secret.jsonl"))
    assert asked and not any("outside" in path for path in asked)


@pytest.mark.parametrize(
    "typed", ["../outside/secret.jsonl", "runs/../a.jsonl", "..", "..\\a.jsonl", "runs\\..\\a.jsonl"]
)
def test_two_dots_are_refused(one, typed):
    with pytest.raises(InputError, match=r'"\.\." is not followed'):
        one.resolve(typed)


@pytest.mark.parametrize("typed", ["", " ", "a\0b", "\0"])
def test_what_is_no_name_is_refused(one, typed):
    with pytest.raises(InputError, match="it is not a file name"):
        one.resolve(typed)


@pytest.mark.parametrize("typed", ["none", "a.jsonl/b", "~", "~/a.jsonl", "x" * 5_000, "a/" * 3_000, "\ud800", "a\nb"])
def test_what_is_not_there_is_refused(one, typed):
    with pytest.raises(InputError, match="there is no such file or folder"):
        one.resolve(typed)


def test_a_name_that_begins_like_the_root_is_outside(tree, one):
    (tree / "data2").mkdir()
    (tree / "data2" / "x").write_text("x")
    with pytest.raises(InputError, match=OUTSIDE):
        one.resolve(str(tree / "data2" / "x"))


@posix
def test_links(tree, one):
    (tree / "data" / "in").symlink_to("runs/B.JSONL")
    (tree / "data" / "out").symlink_to(tree / "outside" / "secret.jsonl")
    (tree / "data" / "outfolder").symlink_to(tree / "outside")
    (tree / "data" / "dangling").symlink_to(tree / "outside" / "none")
    (tree / "data" / "loop").symlink_to("loop")
    assert one.resolve("in") == (tree / "data" / "runs" / "B.JSONL").resolve()
    for typed in ("out", "outfolder", "outfolder/secret.jsonl", "outfolder/none", "dangling"):
        with pytest.raises(InputError) as error:
            one.resolve(typed)
        assert error.value.what == OUTSIDE
    with pytest.raises(InputError, match="no such file"):
        one.resolve("loop")


@posix
def test_a_root_behind_a_link_takes_both_of_its_names(tree):
    (tree / "link").symlink_to(tree / "data")
    linked = DataRoots((tree / "link",))
    file = (tree / "data" / "a.jsonl").resolve()
    assert (
        linked.resolve("a.jsonl") == linked.resolve(str(tree / "link" / "a.jsonl")) == linked.resolve(str(file)) == file
    )
    assert linked.files(["a.jsonl"]) == [("a.jsonl", file)]


@given(st.text(string.ascii_letters + "./\\~ \0:*", max_size=20) | st.text(max_size=20))
def test_any_text_is_a_path_below_the_root_or_an_input_error(tmp_path_factory, typed):
    root = tmp_path_factory.getbasetemp() / "fuzz"
    root.mkdir(exist_ok=True)
    try:
        found = DataRoots((root,)).resolve(typed)
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert found.is_relative_to(root.resolve())


# What is listed


def test_files_in_natural_order_hidden_ones_left_out(tree, one):
    found = one.files((".jsonl", ".json"))
    assert shown(found) == [
        "a.jsonl",
        "runs/B.JSONL",
        "runs/checkpoint-9/trainer_state.json",
        "runs/checkpoint-10/trainer_state.json",
    ]
    assert all(one.resolve(name) == path for name, path in found)
    assert shown(one.files(".JSONL")) == ["a.jsonl", "runs/B.JSONL"]
    assert one.files([]) == []


def test_every_shown_name_of_several_roots_resolves_to_its_file(tree):
    for folder in ("x/data/outside", "y/data"):
        (tree / folder).mkdir(parents=True)
    (tree / "x/data/a.jsonl").write_text("x")
    (tree / "x/data/outside/secret.jsonl").write_text("not the one of the root called outside")
    (tree / "y/data/a.jsonl").write_text("y")
    several = DataRoots((tree / "x/data", tree / "outside", tree / "y/data", tree / "data"))
    found = several.files([".jsonl"])
    assert shown(found) == [
        "data/a.jsonl",
        "data/outside/secret.jsonl",
        "data (2)/a.jsonl",
        "data (3)/a.jsonl",
        "data (3)/runs/B.JSONL",
        "outside/secret.jsonl",
    ]
    for name, path in found:
        assert several.resolve(name) == path
    assert several.resolve("a.jsonl").read_text() == "x"
    assert several.resolve("runs/B.JSONL") == (tree / "data/runs/B.JSONL").resolve()


@posix
def test_files_follows_links_inside_only_and_ends_on_loops(tree, one):
    (tree / "data/out.jsonl").symlink_to(tree / "outside/secret.jsonl")
    (tree / "data/outfolder").symlink_to(tree / "outside")
    (tree / "data/in.jsonl").symlink_to("a.jsonl")
    (tree / "data/runs/up").symlink_to(tree / "data")
    (tree / "data/broken.jsonl").symlink_to("none")
    os.mkfifo(tree / "data/pipe.jsonl")
    assert shown(one.files([".jsonl"])) == ["a.jsonl", "in.jsonl", "runs/B.JSONL"]


@posix
def test_a_folder_that_cannot_be_read_is_left_out(one, monkeypatch):
    scandir = os.scandir

    def refusing(path):
        if os.path.basename(path) == "checkpoint-9":
            raise PermissionError(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    assert shown(one.files([".json"])) == ["runs/checkpoint-10/trainer_state.json"]


def test_lists_are_bounded(tree, one, monkeypatch):
    assert roots.FILES_LISTED == limits.FILES_LISTED and roots.ENTRIES_VISITED == limits.ENTRIES_VISITED
    assert len(one.files([""])) == 4 and not one.files([""]).cut
    for limit, most in (("FILES_LISTED", 2), ("ENTRIES_VISITED", 3)):  # the folder runs is an entry too
        with monkeypatch.context() as patch:
            patch.setattr(roots, limit, most)
            assert shown(one.files([""])) == ["a.jsonl", "runs/B.JSONL"] and one.files([""]).cut
    for limit, most in (("FILES_LISTED", 4), ("ENTRIES_VISITED", 7)):  # as many as there are
        with monkeypatch.context() as patch:
            patch.setattr(roots, limit, most)
            assert len(one.files([""])) == 4 and not one.files([""]).cut


def test_one_huge_folder_is_cut_too(tmp_path, monkeypatch):
    monkeypatch.setattr(roots, "ENTRIES_VISITED", 5)
    for number in range(6):
        (tmp_path / f"{number}.csv").write_text("")
    found = DataRoots((tmp_path,)).files([".csv"])
    assert len(found) == 5 and found.cut


def test_exact_names_are_found_among_any_number_of_others(tree, one, monkeypatch):
    monkeypatch.setattr(roots, "FILES_LISTED", 2)
    for number in range(20):
        (tree / "data" / f"{number}-trainer_state.json").write_text("")
    found = one.files(names=["trainer_state.json"])
    assert shown(found) == ["runs/checkpoint-9/trainer_state.json", "runs/checkpoint-10/trainer_state.json"]
    assert not found.cut
    assert shown(one.files([".JSONL"], names=["none", "runs"])) == ["a.jsonl", "runs/B.JSONL"]  # runs is no file
    assert one.files(names=["Trainer_State.json"]) == []


def test_a_deep_tree_is_walked(tmp_path):
    deep = tmp_path / "/".join("d" * 300)
    deep.mkdir(parents=True)
    (deep / "x.csv").write_text("x")
    assert len(DataRoots((tmp_path,)).files([".csv"])) == 1


@given(st.lists(st.integers(0, 10**9), unique=True))
def test_natural_order_is_by_number(numbers):
    names = [f"runs/checkpoint-{number}/x" for number in numbers]
    assert sorted(names, key=natural_key) == [f"runs/checkpoint-{number}/x" for number in sorted(numbers)]


@given(st.lists(st.text("aAbB019/._-é"), unique=True))
def test_natural_order_does_not_depend_on_the_order_given(names):
    backwards = names[::-1]
    assert sorted(names, key=natural_key) == sorted(backwards, key=natural_key)
    assert sorted(["a1", "a", "A2", "a10", "a02"], key=natural_key) == ["a", "a1", "A2", "a02", "a10"]
