"""Memory of a direction study of a large pair of files below a data root, as the page runs it.

    python benchmarks/study_memory.py [--rows 12000] [--repeats 999] [--keep FOLDER]

Writes a pair of float32 exports (12,000 and 6,000 rows of 4,096 dimensions, about 295 MB), studies it by the page's
own function, and reads the memory of this process from /proc every 20 ms, so it runs on Linux only. RssAnon is what the
study holds; pages of the mapped files are not in it, since the system may drop them at any time. The bound is that of
study_speed.py, in which both files count: 1.5 times their size and (2 repeats + 1) x dimensions in float32. Exit code 1
when it is missed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from refusal_core.activations.reading import Reading  # noqa: E402
from refusal_core.direction.planning import estimated_seconds  # noqa: E402
from refusal_core.direction.result import Settings  # noqa: E402
from refusal_core.jobs import Job  # noqa: E402
from refusal_core.limits import show_bytes  # noqa: E402
from ui.study import FILE, Asked, Offered, run  # noqa: E402

DIMENSIONS, CATEGORIES, EVERY_SECONDS, MEMORY_AIM = 4_096, 20, 0.02, 1.5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=12_000, help="of the training file; the test file has half of them")
    parser.add_argument("--repeats", type=int, default=999)
    parser.add_argument("--keep", metavar="FOLDER", help="write the files there and leave them")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = tuple(
            write(Path(args.keep or folder), name, rows, seed)
            for seed, (name, rows) in enumerate((("train", args.rows), ("test", args.rows // 2)))
        )
        return measure(files, args)


def measure(files: tuple[Offered, ...], args: argparse.Namespace) -> int:
    size = sum(file.size for file in files)
    before, sampler = anonymous(), Sampler()
    sampler.start()
    begun, used = time.monotonic(), time.process_time()
    record = run(Asked(files, Reading(), Settings(repeats=args.repeats)), Job())
    seconds, used = time.monotonic() - begun, time.process_time() - used
    sampler.end.set()
    sampler.join()
    held = sampler.peak - before
    bound = round(MEMORY_AIM * size + 4 * (2 * args.repeats + 1) * DIMENSIONS)
    print(record.study.headline)
    shapes = (args.rows, DIMENSIONS), (args.rows // 2, DIMENSIONS)
    options = {"repeats": args.repeats, "split_repeats": 20, "shared": True, "size": size}
    print(f"{show_bytes(size)} in two files, {args.repeats:,} shuffles: {seconds:.1f} s, {used:.1f} s of one core")
    print(f"the page would have said: about {estimated_seconds(*shapes, **options):.1f} s")
    print(f"held by the study at its peak: {show_bytes(held)} (before it {show_bytes(before)})")
    print(f"bound, in which the files count: {show_bytes(bound)}")
    print("within the bound: " + ("yes" if held <= bound else "NO"))
    return 0 if held <= bound else 1


def write(folder: Path, name: str, rows: int, seed: int) -> Offered:
    """An export with a planted direction, categories in both files."""
    rng = np.random.default_rng(seed)
    code = np.arange(rows) % CATEGORIES
    labels = code % 2
    values = rng.standard_normal((rows, DIMENSIONS), np.float32)
    values[:, :32] += 0.2 * labels[:, None]
    path = folder / f"{name}.npz"
    ids = np.array([f"{name}-{k:06d}" for k in range(rows)])
    np.savez(path, activations=values, labels=labels, ids=ids, categories=np.array([f"topic {k}" for k in code]))
    del values
    return Offered(FILE, path.name, path.name, path, path.stat().st_size, (str(path),))


def anonymous() -> int:
    """Bytes that the process holds and no file backs."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise SystemExit("this needs Linux")


class Sampler(threading.Thread):
    """Reads the memory until `end` is set; `peak` is the most."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.end, self.peak = threading.Event(), 0

    def run(self) -> None:
        while not self.end.wait(EVERY_SECONDS):
            self.peak = max(self.peak, anonymous())


if __name__ == "__main__":
    sys.exit(main())
