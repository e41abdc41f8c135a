import errno
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from refusal_core import atomic, reports
from refusal_core.atomic import atomic_file, atomic_folder
from refusal_core.errors import InputError, WorkError

posix = pytest.mark.skipif(os.name == "nt", reason="POSIX files")

# One file


def names(folder):
    return sorted(os.listdir(folder))


def test_the_module_of_reports_offers_both():
    assert (reports.atomic_file, reports.atomic_folder) == (atomic_file, atomic_folder)


def test_atomic_file_writes_exactly_what_it_is_given(tmp_path):
    with atomic_file(tmp_path / "a.txt") as file:
        file.write("é\r\n\n\ud83d")
        assert not (tmp_path / "a.txt").exists()
    assert (tmp_path / "a.txt").read_bytes() == "é\r\n\n\\ud83d".encode()
    with atomic_file(os.fspath(tmp_path / "a.txt"), "wb") as file:
        file.write(b"\x00\xff")
    assert (tmp_path / "a.txt").read_bytes() == b"\x00\xff"
    assert names(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit, FileNotFoundError])
@pytest.mark.parametrize("old", [None, "old"])
def test_atomic_file_leaves_the_old_one_on_any_exception(tmp_path, error, old):
    path = tmp_path / "a.txt"
    if old:
        path.write_text(old)
    with pytest.raises(error), atomic_file(path) as file:
        file.write("new")
        file.flush()
        raise error
    assert names(tmp_path) == (["a.txt"] if old else [])
    assert not old or path.read_text() == old


def test_atomic_file_hides_its_temporary_file_beside(tmp_path):
    with atomic_file(tmp_path / "a.txt") as file:
        file.write("x")
        (beside,) = names(tmp_path)
        assert beside.startswith(".")


def killed(code, *arguments):
    """Run `code` in a Python of its own until it kills itself."""
    root = str(Path(atomic.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": root}
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], env=environment, capture_output=True, check=False
    )
    return done.returncode


KILL = "os.kill(os.getpid(), signal.SIGKILL)"


@posix
@pytest.mark.parametrize("moment", ["while writing", "before the rename", "after the rename"])
def test_atomic_file_killed(tmp_path, moment):
    path = tmp_path / "a.txt"
    path.write_text("old")
    code = f"""
import os, signal, sys
from refusal_core import atomic
if sys.argv[2] == "before the rename":
    os.replace = lambda *paths: {KILL}
if sys.argv[2] == "after the rename":
    atomic._sync_folder = lambda folder: {KILL}
with atomic.atomic_file(sys.argv[1]) as file:
    file.write("new" * 100_000)
    file.flush()
    if sys.argv[2] == "while writing":
        {KILL}
"""
    assert killed(code, path, moment) == -signal.SIGKILL
    assert path.read_text() == ("new" * 100_000 if moment == "after the rename" else "old")
    assert all(name.startswith(".") for name in names(tmp_path) if name != "a.txt")
    with atomic_file(path) as file:
        file.write("again")
    assert path.read_text() == "again"


def test_atomic_file_refuses_a_folder_and_a_missing_one(tmp_path):
    with pytest.raises(InputError, match=r": it is a folder; .*; name a file in it\."), atomic_file(tmp_path):
        pass
    with pytest.raises(InputError, match="the folder to write in does not exist"), atomic_file(tmp_path / "no" / "a"):
        pass
    (tmp_path / "f").write_text("f")
    with pytest.raises(InputError, match="does not exist"), atomic_file(tmp_path / "f" / "a"):
        pass
    for wrong in ("", "a\0b"):
        with pytest.raises(InputError), atomic_file(wrong):
            pass
    with pytest.raises(ValueError, match="mode"), atomic_file(tmp_path / "a", "a"):
        pass
    assert names(tmp_path) == ["f"]


@posix
def test_atomic_file_permissions(tmp_path):
    def mode(name):
        return stat.S_IMODE((tmp_path / name).stat().st_mode)

    old_mask = os.umask(0o027)
    try:
        with atomic_file(tmp_path / "new"):
            pass
        assert mode("new") == 0o640
        (tmp_path / "new").chmod(0o604)
        with atomic_file(tmp_path / "new"):
            pass
        assert mode("new") == 0o604
        with atomic_folder(tmp_path / "folder", []):
            pass
        assert mode("folder") == 0o750
        (tmp_path / "folder").chmod(0o705)
        with atomic_folder(tmp_path / "folder", []):
            pass
        assert mode("folder") == 0o705
    finally:
        os.umask(old_mask)


@posix
@pytest.mark.parametrize("exists", [True, False])
def test_atomic_file_writes_through_a_link(tmp_path, exists):
    (tmp_path / "real").mkdir()
    target = tmp_path / "real" / "target"
    if exists:
        target.write_text("old")
    (tmp_path / "link").symlink_to(target)
    with atomic_file(tmp_path / "link") as file:
        file.write("new")
    assert (tmp_path / "link").is_symlink()
    assert target.read_text() == "new" and names(tmp_path / "real") == ["target"]


@posix
def test_atomic_file_writes_pipes_directly(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    read = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_text()))
    reader.start()
    with atomic_file(tmp_path / "pipe") as file:
        file.write("through")
    reader.join()
    assert read == ["through"]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="needs /dev/stdout")
def test_atomic_file_writes_to_where_standard_output_goes(tmp_path):
    code = "from refusal_core.atomic import atomic_file\nwith atomic_file('/dev/stdout') as file: file.write('through')"
    environment = {**os.environ, "PYTHONPATH": str(Path(atomic.__file__).parents[1])}
    with open(tmp_path / "out", "w+") as out:
        subprocess.run([sys.executable, "-c", code], env=environment, stdout=out, check=True)
        assert out.read() == "through", "the file that was open got replaced by another"
    assert names(tmp_path) == ["out"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_one_sentence():
    sentence = r"^/dev/full cannot be written: no space left on device\.$"
    with pytest.raises(WorkError, match=sentence), atomic_file("/dev/full") as file:
        file.write("x" * 100_000)


@posix
def test_a_file_cut_by_the_system_leaves_the_old_one(tmp_path):
    import resource

    path = tmp_path / "a"
    path.write_text("old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.raises(WorkError, match="cannot be written: file too large"), atomic_file(path) as file:
            file.write("x" * 1_000_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_text() == "old" and names(tmp_path) == ["a"]


def test_what_fails_at_the_end_is_one_sentence_too(tmp_path, monkeypatch):
    def fail(*arguments):
        raise OSError(errno.EIO, "Input/output error")

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, fail)
            with pytest.raises(WorkError, match="cannot be written: input/output error"), atomic_file(tmp_path / "a"):
                pass
        assert names(tmp_path) == []


def test_write_protected_is_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "a").write_text("old")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everything
    with pytest.raises(WorkError, match="write-protected"), atomic_file(tmp_path / "a"):
        pass
    assert (tmp_path / "a").read_text() == "old"


# A folder


def fill(folder, text):
    for name in ("one", "two"):
        (folder / name).write_text(text)


def held(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


ONE_STEP = pytest.mark.parametrize("one_step", [True, False])


@pytest.fixture
def swapping(monkeypatch):
    """Make the two-step exchange happen, as on systems without the other."""

    def choose(one_step):
        if not one_step:
            monkeypatch.setattr(atomic, "_swap_in_one_step", lambda one, other: False)

    return choose


@ONE_STEP
def test_atomic_folder_is_new_and_then_replaced_as_a_whole(tmp_path, swapping, one_step):
    swapping(one_step)
    out = tmp_path / "out"
    with atomic_folder(out, ["one", "two"]) as folder:
        fill(folder, "first")
        assert not out.exists()
    assert held(out) == {"one": "first", "two": "first"}
    (out / ".DS_Store").write_text("litter")
    with atomic_folder(out, ["one", "two"]) as folder:
        (folder / "two").write_text("second")
        assert held(out)["one"] == "first"
    assert held(out) == {"two": "second"}
    assert names(tmp_path) == ["out"]


def test_atomic_folder_takes_an_empty_one_and_folders_in_it(tmp_path):
    (tmp_path / "out").mkdir()
    with atomic_folder(tmp_path / "out", ["sub"]) as folder:
        (folder / "sub").mkdir()
        (folder / "sub" / "x").write_text("x")
    assert (tmp_path / "out" / "sub" / "x").read_text() == "x"


@ONE_STEP
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, FileNotFoundError])
def test_atomic_folder_leaves_the_old_one_on_any_exception(tmp_path, swapping, one_step, error):
    swapping(one_step)
    with atomic_folder(tmp_path / "out", ["one", "two"]) as folder:
        fill(folder, "old")
    with pytest.raises(error), atomic_folder(tmp_path / "out", ["one", "two"]) as folder:
        fill(folder, "new")
        raise error
    assert held(tmp_path / "out") == {"one": "old", "two": "old"}
    assert names(tmp_path) == ["out"]


def test_atomic_folder_refuses_other_files_before_any_work(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    fill(out, "old")
    (out / "thesis.tex").write_text("mine")
    with pytest.raises(InputError, match=r"holds other files \(thesis\.tex\)"), atomic_folder(out, ["one", "two"]):
        pytest.fail("work was begun")
    assert held(out) == {"one": "old", "two": "old", "thesis.tex": "mine"}
    for i in range(9):
        (out / f"n{i}").write_text("")
    with pytest.raises(InputError, match=r"\(n0, n1, n2 and 7 more\)"), atomic_folder(out, ["one", "two"]):
        pytest.fail("work was begun")


def test_atomic_folder_refuses_what_it_cannot_replace(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("f")
    (tmp_path / "here" / "below").mkdir(parents=True)
    cases = [("file", "it is a file"), ("no/out", "does not exist"), ("file/out", "does not exist")]
    for name, sentence in cases:
        with pytest.raises(InputError, match=sentence), atomic_folder(tmp_path / name, []):
            pytest.fail("work was begun")
    monkeypatch.chdir(tmp_path / "here" / "below")
    for name in (".", "..", os.path.abspath(os.sep)):
        with pytest.raises(InputError), atomic_folder(name, ["below", *os.listdir(os.sep)]):
            pytest.fail("work was begun")
    assert names(tmp_path) == ["file", "here"]
    monkeypatch.setattr(os.path, "ismount", lambda path: path == os.path.realpath(tmp_path / "volume"))
    (tmp_path / "volume").mkdir()
    with pytest.raises(InputError, match="mount points cannot be replaced"), atomic_folder(tmp_path / "volume", []):
        pytest.fail("work was begun")


@ONE_STEP
def test_what_somebody_puts_there_meanwhile_is_kept(tmp_path, swapping, one_step):
    swapping(one_step)
    out = tmp_path / "out"
    out.mkdir()
    with atomic_folder(out, ["one", "two"]) as folder:
        fill(folder, "new")
        (out / "notes.txt").write_text("mine")
    assert held(out) == {"one": "new", "two": "new", "notes.txt": "mine"}
    assert names(tmp_path) == ["out"]


def test_a_caller_that_writes_other_names_is_told(tmp_path):
    with pytest.raises(ValueError, match="two"), atomic_folder(tmp_path / "out", ["one"]) as folder:
        fill(folder, "x")
    assert names(tmp_path) == []


def test_two_steps_that_fail_between_put_the_old_folder_back(tmp_path, swapping, monkeypatch):
    swapping(False)
    with atomic_folder(tmp_path / "out", ["one", "two"]) as folder:
        fill(folder, "old")
    real_rename, calls = os.rename, []

    def rename(*paths):
        calls.append(paths)
        if len(calls) == 2:
            raise OSError(errno.EACCES, "Permission denied")
        real_rename(*paths)

    with pytest.raises(WorkError, match="permission denied"), atomic_folder(tmp_path / "out", ["one", "two"]) as folder:
        fill(folder, "new")
        monkeypatch.setattr(os, "rename", rename)
    assert held(tmp_path / "out") == {"one": "old", "two": "old"}
    assert names(tmp_path) == ["out"]


@posix
def test_atomic_folder_writes_through_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "real")
    with atomic_folder(tmp_path / "out", ["one", "two"]) as folder:
        fill(folder, "new")
    assert (tmp_path / "out").is_symlink() and held(tmp_path / "real") == {"one": "new", "two": "new"}
    assert names(tmp_path) == ["out", "real"]


FOLDER_CODE = f"""
import os, signal, sys
from refusal_core import atomic
path, moment, two_steps = sys.argv[1], sys.argv[2], sys.argv[3] == "two"
if two_steps:
    atomic._swap_in_one_step = lambda one, other: False
if moment == "before the swap":
    atomic._exchange = lambda *paths: {KILL}
if moment == "after the swap":
    atomic._keep_strangers = lambda *paths: {KILL}
if moment == "between":
    rename = os.rename
    os.rename = lambda *paths: (rename(*paths), {KILL})
with atomic.atomic_folder(path, ["one", "two"]) as folder:
    (folder / "one").write_text("new")
    if moment == "while writing":
        {KILL}
    (folder / "two").write_text("new")
"""


@posix
@pytest.mark.parametrize(
    ("moment", "steps", "left"),
    [
        ("while writing", "one", "old"),
        ("before the swap", "one", "old"),
        ("after the swap", "one", "new"),
        ("after the swap", "two", "new"),
        ("between", "two", None),
    ],
)
def test_atomic_folder_killed(tmp_path, moment, steps, left):
    out = tmp_path / "out"
    out.mkdir()
    fill(out, "old")
    assert killed(FOLDER_CODE, out, moment, steps) == -signal.SIGKILL
    if left is None:
        assert not out.exists(), "the kill came too late to test anything"
        with pytest.raises(KeyboardInterrupt), atomic_folder(out, ["one", "two"]):
            raise KeyboardInterrupt
        left = "old"
    assert held(out) == {"one": left, "two": left}
    with atomic_folder(out, ["one", "two"]) as folder:
        fill(folder, "again")
    assert held(out) == {"one": "again", "two": "again"}


@pytest.mark.skipif(sys.platform != "linux", reason="renameat2 is Linux's")
def test_one_step_is_what_happens_here(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_text(name)
    if not atomic._swap_in_one_step(str(tmp_path / "a"), str(tmp_path / "b")):
        pytest.skip("this file system cannot exchange folders")
    assert names(tmp_path / "a") == ["b"] and names(tmp_path / "b") == ["a"]


def test_a_full_disk_under_a_folder_is_one_sentence(tmp_path):
    with (
        pytest.raises(WorkError, match="out cannot be written: no space left"),
        atomic_folder(tmp_path / "out", ["one"]),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert names(tmp_path) == []
