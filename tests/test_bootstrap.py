"""The set-up script and the check that runs it, with a Python and a pip that only note what they are asked for."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.skipif(os.name == "nt", reason="shell scripts stand in for programs")

URL = "https://index.example/cpu"
# Stands in for the Python that starts the script and, copied into the environment, for the one in it.
FAKE_PYTHON = f"""#!{sys.executable}
import json, os, pathlib, shutil, sys
here, words = pathlib.Path(__file__), sys.argv[1:]
with open(os.environ["NOTED"], "a") as file:
    file.write(json.dumps([os.path.basename(os.path.dirname(here)), *words]) + "\\n")
if words[:2] == ["-m", "venv"]:
    venv = pathlib.Path(words[-1])
    if "--clear" in words:
        shutil.rmtree(venv)
    (venv / "bin").mkdir(parents=True, exist_ok=True)
    (venv / "pyvenv.cfg").touch()
    (venv / "pip").touch()
    shutil.copy(here, venv / "bin" / "python")
if words[:2] == ["-m", "pip"]:
    sys.exit(not (here.parents[1] / "pip").exists() or os.environ.get("FAILS", "none") in words)
"""
# Runs the script as that Python would; "ensurepip" as an argument takes this module away.
DRIVER = """
import runpy, sys
python, ensurepip, *sys.argv = sys.argv[1:]
sys.executable = python
if ensurepip == "without":
    sys.modules["ensurepip"] = None
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@dataclass
class Bench:
    """A copy of the script in a project of its own."""

    folder: Path

    @property
    def venv(self) -> Path:
        return self.folder / ".venv"

    def run(self, *words: str, ensurepip: str = "with", code: int = 0, **environment: str) -> tuple[list[str], str]:
        """What the fake programs were asked for, without checks for pip; and what was said to the reader."""
        noted = self.folder / "noted"
        noted.write_text("")
        command = [sys.executable, "-c", DRIVER, str(self.folder / "system" / "python"), ensurepip, "bootstrap.py"]
        done = subprocess.run(
            [*command, *words],
            cwd=self.folder,
            env={**os.environ, "NOTED": str(noted), **environment},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == code, done.stderr
        asked = [" ".join(json.loads(line)) for line in noted.read_text().splitlines()]
        return [one for one in asked if "--version" not in one], done.stderr


@pytest.fixture
def bench(tmp_path) -> Bench:
    shutil.copy(ROOT / "bootstrap.py", tmp_path)
    (tmp_path / "requirements.txt").write_text("numpy>=2\ntorch>=2.13,<3  # CPU is enough\n")
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    (tmp_path / "system").mkdir()
    (tmp_path / "system" / "python").write_text(FAKE_PYTHON)
    (tmp_path / "system" / "python").chmod(0o755)
    return Bench(tmp_path)


PIP = "bin -m pip install --disable-pip-version-check --quiet"
INSTALL = f"{PIP} --editable .[dev]"
TORCH = f"{PIP} --force-reinstall --no-deps torch>=2.13,<3 --index-url {URL}"
TEST = "bin -m pytest -n 2 --dist worksteal"


def test_the_first_start_installs_and_the_second_only_runs(bench):
    assert bench.run("test", "-k", "x")[0] == [f"system -m venv {bench.venv}", INSTALL, f"{TEST} -k x"]
    assert bench.run("test")[0] == [TEST]
    assert bench.run("app")[0] == [f"{PIP} --editable .", "bin -m streamlit run app.py"]
    assert bench.run("app")[0] == ["bin -m streamlit run app.py"]
    (bench.folder / "requirements.txt").write_text("torch>=3\n")
    assert bench.run("test")[0] == [INSTALL, TEST]


def test_an_index_for_torch_counts_in_an_environment_that_is_ready_too(bench):
    assert bench.run("test")[0][1:] == [INSTALL, TEST]
    assert bench.run("--torch-index-url", URL, "test")[0] == [TORCH, INSTALL, TEST]
    assert bench.run("--torch-index-url", URL, "test")[0] == [INSTALL, TEST]  # it is from there already
    assert bench.run("--torch-index-url", f"{URL}/2", "test")[0] == [f"{TORCH}/2", INSTALL, TEST]
    assert bench.run("test")[0] == [TEST]


def test_an_environment_without_pip_is_made_again(bench):
    bench.run("test")
    (bench.venv / "pip").unlink()
    (bench.venv / "left over").touch()
    (bench.folder / "pyproject.toml").write_text("[project]\nname = 'changed'\n")
    assert bench.run("test")[0] == [f"system -m venv --clear {bench.venv}", INSTALL, TEST]
    assert not (bench.venv / "left over").exists()


@pytest.mark.parametrize("broken", ["no python", "dangling", "not executable"])
def test_an_environment_whose_python_does_not_start_is_made_again(bench, broken):
    bench.run("test")
    python = bench.venv / "bin" / "python"
    (bench.folder / "pyproject.toml").write_text("[project]\nname = 'changed'\n")
    if broken == "not executable":
        python.chmod(0o644)
    else:
        python.unlink()
    if broken == "dangling":
        python.symlink_to(bench.folder / "gone")
    assert bench.run("test")[0] == [f"system -m venv --clear {bench.venv}", INSTALL, TEST]


def test_a_folder_that_is_no_environment_is_never_emptied(bench):
    mine = bench.folder / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years")
    assert bench.run("--venv", "mine", "test")[0] == [f"system -m venv {mine}", INSTALL, TEST]
    assert (mine / "thesis.txt").read_text() == "years"


def test_a_python_without_ensurepip_is_one_sentence(bench):
    asked, said = bench.run("test", ensurepip="without", code=2)
    assert asked == [] and "apt install python3-venv" in said and said.count("\n") == 1
    bench.run("test")
    assert bench.run("test", ensurepip="without")[0] == [TEST]  # nothing is to be made


def test_a_set_up_that_fails_is_tried_again(bench):
    asked, said = bench.run("test", code=2, FAILS="--editable")
    assert asked[-1] == INSTALL and "The set-up stopped at" in said and said.count("\n") == 1
    assert bench.run("test")[0] == [INSTALL, TEST]


@pytest.mark.parametrize("url", [None, "", URL])
def test_the_check_passes_the_index_for_torch_on(tmp_path, url):
    """.ci/run with a Python that notes its words, and makes the ruff that is asked for next."""
    (tmp_path / "python3").write_text(
        '#!/bin/sh\nprintf "%s\\n" "$@" >"$NOTED"\nmkdir -p "$3/bin"\nprintf "#!/bin/sh\\n" >"$3/bin/ruff"\n'
        'chmod +x "$3/bin/ruff"\n'
    )
    (tmp_path / "chromium").write_text("#!/bin/sh\n")
    for name in ("python3", "chromium"):
        (tmp_path / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "NOTED": str(tmp_path / "noted")}
    environment.pop("TORCH_INDEX_URL", None)
    if url is not None:
        environment["TORCH_INDEX_URL"] = url
    subprocess.run([str(ROOT / ".ci" / "run")], env=environment, check=True, timeout=60)
    words = (tmp_path / "noted").read_text().splitlines()
    assert words[:2] == ["bootstrap.py", "--venv"]
    assert words[3 : words.index("test")] == (["--torch-index-url", url] if url else [])
