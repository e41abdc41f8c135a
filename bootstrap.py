"""Set everything up in a virtual environment of its own, then open the app or run the tests.

    python3 bootstrap.py app            opens the app in the browser; further words go to `streamlit run`
    python3 bootstrap.py test           runs the tests; further words go to pytest

Options, before the first word: --venv DIR (default: .venv beside this file) and --torch-index-url URL (where to take
torch from, for example the index of CPU builds that pytorch.org names).
"""

import argparse
import hashlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# What is installed, and the command that runs in the environment afterwards.
JOBS = {
    "app": (".", ["streamlit", "run", "app.py"]),
    # Two at a time: half of the suite waits for a browser, a server or a disk. `-n 0` after it: one process.
    "test": (".[dev]", ["pytest", "-n", "2", "--dist", "worksteal"]),
}
QUIET = subprocess.DEVNULL
NO_ENSUREPIP = (
    "This Python cannot make a virtual environment with pip, since its module ensurepip is missing; "
    "on Debian and Ubuntu: apt install python3-venv, then run this again."
)


def main() -> int:
    if sys.version_info < (3, 11):  # noqa: UP036 - this file is what an older Python meets first
        return fail("Python 3.11 or newer is needed; this is {}.{}.".format(*sys.version_info[:2]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--venv", type=Path, default=HERE / ".venv")
    parser.add_argument("--torch-index-url", metavar="URL")
    parser.add_argument("job", choices=JOBS)
    args, words = parser.parse_known_args()
    what, command = JOBS[args.job]
    venv = args.venv.absolute()
    python = venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    try:
        if not is_ready(venv, python, what, args.torch_index_url):
            if not has_pip(python) and importlib.util.find_spec("ensurepip") is None:
                return fail(NO_ENSUREPIP)
            set_up(venv, python, what, args.torch_index_url)
    except subprocess.CalledProcessError as problem:
        return fail(f"The set-up stopped at: {' '.join(map(str, problem.cmd))}; its message stands above.")
    command = [str(python), "-m", *command, *words]
    if os.name != "nt":  # in the place of this process, so that whoever stops it stops what it started
        os.chdir(HERE)
        os.execv(python, command)
    try:
        return subprocess.call(command, cwd=HERE)
    except KeyboardInterrupt:
        return 130


def is_ready(venv, python, what, torch_index_url) -> bool:
    """Whether nothing is to be installed: a stamp of the project's own files makes the second start quick."""
    return python.exists() and not torch_index_url and content_of(stamp_of(venv, what)) == state_of_project()


def set_up(venv, python, what, torch_index_url) -> None:
    """Install what is missing, into a new environment when there is none with pip."""
    print(f"Setting up {venv}; the first time takes a few minutes.", flush=True)
    if not has_pip(python):
        clear = ["--clear"] if (venv / "pyvenv.cfg").exists() else []  # what is no environment is never emptied
        subprocess.check_call([sys.executable, "-m", "venv", *clear, str(venv)])
    pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
    torch_source = venv / "torch-index-url"
    if torch_index_url and content_of(torch_source) != torch_index_url:
        torch = next(line for line in (HERE / "requirements.txt").read_text().splitlines() if line.startswith("torch"))
        # Anew even when another build of it is there; what it needs comes with the project.
        anew = ["--force-reinstall", "--no-deps", torch.split("#")[0].strip()]
        subprocess.check_call([*pip, *anew, "--index-url", torch_index_url])
        torch_source.write_text(torch_index_url)
    subprocess.check_call([*pip, "--editable", what], cwd=HERE)
    stamp_of(venv, what).write_text(state_of_project())


def has_pip(python) -> bool:
    try:
        return subprocess.call([str(python), "-m", "pip", "--version"], stdout=QUIET, stderr=QUIET) == 0
    except OSError:  # there is no such Python, or it does not start
        return False


def stamp_of(venv, what) -> Path:
    return venv / f"refusal-core-{hashlib.sha256(what.encode()).hexdigest()[:8]}.stamp"


def state_of_project() -> str:
    return hashlib.sha256((HERE / "requirements.txt").read_bytes() + (HERE / "pyproject.toml").read_bytes()).hexdigest()


def content_of(path):
    return path.read_text() if path.exists() else None


def fail(text) -> int:
    print(text, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
