"""How long a training folder takes to read: python benchmarks/runs_read.py [--rows N] [--files N]

Prints ratios measured in one run: the time from a trainer state to its curves, and to the figures that the page opens
with, over that of `json.load` alone, the peak memory over the size of the file, what the largest figure sends to the
browser, and the time for a folder of many small files.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

ROWS_A_WRITE = 50_000


def write_state(path: Path, rows: int) -> None:
    """A state as the Trainer writes it: every tenth row is an evaluation."""
    with path.open("w") as file:
        file.write('{\n  "best_metric": null,\n  "epoch": 3.0,\n')
        file.write(f'  "global_step": {rows * 10},\n  "log_history": [\n')
        for at in range(rows):
            step = (at + 1) * 10
            row = {"epoch": round(3 * at / rows, 6), "step": step}
            if at % 10 == 9:
                row |= {"eval_accuracy": 0.5 + at / rows / 3, "eval_loss": 1 / (1 + at), "eval_runtime": 2.1234}
            else:
                row |= {"grad_norm": 1.25 + at % 7 / 3, "learning_rate": 5e-05 * (1 - at / rows), "loss": 1 / (1 + at)}
            text = json.dumps(row, indent=2, sort_keys=True).replace("\n", "\n    ")
            file.write(f"    {text}{',' if at + 1 < rows else ''}\n")
        file.write('  ],\n  "max_steps": 1000000\n}\n')


def child(code: str, *arguments: str) -> tuple[float, int, int]:
    """Seconds, bytes of peak memory beyond the imports, and what `work` returns, of `code` in a process of its own."""
    wrapped = f"""
import resource, sys, time
sys.path.insert(0, {str(REPOSITORY)!r})
{code}
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
begun = time.perf_counter()
found = work(*sys.argv[1:])
seconds = time.perf_counter() - begun
print(seconds, found or 0, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""
    done = subprocess.run([sys.executable, "-c", wrapped, *arguments], capture_output=True, text=True, check=True)
    seconds, found, memory = done.stdout.split()
    return float(seconds), int(memory), int(found)


JSON_ALONE = """
import json
def work(path):
    with open(path, "rb") as file:
        json.load(file)
"""
READ = """
import numpy
from refusal_core.runs.read import read
def work(path):
    [state] = read(path)
    assert state.curves
"""
DRAW = """
import numpy
from refusal_core.runs.discover import discover
from refusal_core.runs.view import draw, first_panels, panels
from refusal_core.plots.runs import curves
import plotly.graph_objects
def work(path):
    runs, _ = discover(path)
    figures = [curves(draw(runs, panel))[0] for panel in first_panels(panels(runs))]
    assert len(figures) > 1
    return max(len(figure.to_json()) for figure in figures)
"""
FOLDER = """
import numpy
from refusal_core.runs.discover import discover
def work(path):
    runs, problems = discover(path)
    assert runs
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="log rows of the state (default: 1,000,000)")
    parser.add_argument("--files", type=int, default=10_000, help="files of the folder (default: 10,000)")
    parser.add_argument("--repeats", type=int, default=3, help="the fastest of so many counts (default: 3)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "trainer_state.json"
        write_state(state, args.rows)
        size = state.stat().st_size
        print(f"trainer state: {args.rows:,} rows, {size / 1e6:.0f} MB")
        alone = min(child(JSON_ALONE, str(state)) for _ in range(args.repeats))
        ours = min(child(READ, str(state)) for _ in range(args.repeats))
        print(f"  json.load alone  {alone[0]:6.2f} s, peak {alone[1] / size:.2f} times the file")
        print(f"  to curves        {ours[0]:6.2f} s, peak {ours[1] / size:.2f} times the file")
        drawn = min(child(DRAW, folder) for _ in range(args.repeats))
        print(f"  to figures       {drawn[0]:6.2f} s, peak {drawn[1] / size:.2f} times the file")
        print(f"  time ratio to curves {ours[0] / alone[0]:.2f}, to figures {drawn[0] / alone[0]:.2f} (aim: at most 3)")
        print(f"  memory ratio {max(ours[1], drawn[1]) / size:.2f} (aim: at most 6)")
        print(f"  largest figure {drawn[2] / 1e6:.2f} MB (aim: at most 2)")
    with tempfile.TemporaryDirectory() as folder:
        for number in range(args.files // 4):
            run = Path(folder) / f"run-{number % 500}" / f"checkpoint-{number}"
            run.mkdir(parents=True)
            write_state(run / "trainer_state.json", 8)
            (run / "eval_results.json").write_text('{"eval_loss": 0.5, "eval_accuracy": 0.75, "epoch": 1.0}')
            (run / "config.json").write_text('{"id2label": {"0": "a", "1": "b"}, "model_type": "bert"}')
            (run / "model.safetensors").write_bytes(b"\x40\0\0\0\0\0\0\0" + b'{"__metadata__":{}}' + b" " * 200)
        seconds, memory, _ = child(FOLDER, folder)
        print(
            f"{args.files:,} files: {seconds:.2f} s, {seconds / args.files * 1e3:.2f} ms a file, {memory / 1e6:.0f} MB"
        )


if __name__ == "__main__":
    main()
