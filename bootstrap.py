"""Set everything up in a virtual environment of its own, then open the app or run the tests.

    python3 bootstrap.py app            opens the app in the browser; further words go to `streamlit run`
    python3 bootstrap.py test           runs the tests; further words go to pytest

Options, before the first word: --venv DIR (default: .venv beside this file) and --torch-index-url URL (where to take
torch from, for example the index of CPU builds that pytorch.org names).
"""

import argparse
import hashlib
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# What is installed, and the command that runs in the environment afterwards.
JOBS = {
    "app": (".", ["streamlit", "run", "app.py"]),
    "test": (".[dev]", ["pytest"]),
}


def main() -> int:
    if sys.version_info < (3, 11):  # noqa: UP036 - this file is what an older Python meets first
        return fail("Python 3.11 or newer is needed; this is {}.{}.".format(*sys.version_info[:2]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--venv", type=Path, default=HERE / ".venv")
    parser.add_argument("--torch-index-url", metavar="URL")
    parser.add_argument("job", choices=JOBS)
    args, words = parser.parse_known_args()
    what, command = JOBS[args.job]
    python = args.venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    try:
        set_up(args.venv, python, what, args.torch_index_url)
    except subprocess.CalledProcessError as problem:
        return fail(f"The set-up stopped at: {' '.join(map(str, problem.cmd))}; its message stands above.")
    try:
        return subprocess.call([str(python), "-m", *command, *words], cwd=HERE)
    except KeyboardInterrupt:
        return 130


def set_up(venv, python, what, torch_index_url) -> None:
    """Install what is missing. A stamp of the project's own files makes the second start quick."""
    stamp = venv / f"refusal-core-{hashlib.sha256(what.encode()).hexdigest()[:8]}.stamp"
    content = hashlib.sha256(
        (HERE / "requirements.txt").read_bytes() + (HERE / "pyproject.toml").read_bytes()
    ).hexdigest()
    if python.exists() and stamp.exists() and stamp.read_text() == content:
        return
    print(f"Setting up {venv}; the first time takes a few minutes.", flush=True)
    if not python.exists():
        subprocess.check_call([sys.executable, "-m", "venv", str(venv)])
    pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
    if torch_index_url:
        torch = next(line for line in (HERE / "requirements.txt").read_text().splitlines() if line.startswith("torch"))
        subprocess.check_call([*pip, torch.split("#")[0].strip(), "--index-url", torch_index_url])
    subprocess.check_call([*pip, "--editable", what], cwd=HERE)
    stamp.write_text(content)


def fail(text) -> int:
    print(text, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
