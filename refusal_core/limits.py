"""Every size limit of the project, in one table. Pages show them; readers check them before they allocate."""

from __future__ import annotations

from refusal_core.errors import InputError

KB, MB, GB = 1_000, 1_000_000, 1_000_000_000

# One exchange
TEXT_CHARACTERS = 2_000_000  # prompt or response; a longer one is an error of that row
MESSAGES_PER_CHAT = 1_000
JSON_DEPTH = 100
LANGUAGE_CHECK_CHARACTERS = 30  # a shorter text says too little about its language
LANGUAGE_SAMPLE_CHARACTERS = 2_000

# Exchange files
LINE_BYTES = 16 * MB  # one JSONL line or one CSV record
JSON_ARRAY_BYTES = 200 * MB  # a .json file is read whole; JSONL is streamed and has no limit
PARQUET_ROW_GROUP_BYTES = 1 * GB  # uncompressed, from the file's own metadata
EVALUATE_ROWS = 1_000_000
BATCH_ROWS = 100_000  # scored on the page, whose rows stay in memory; the command has no limit

# Classifier
MAX_TOKENS = 4_096  # default cap of a pair; a checkpoint's own limit may be lower
PADDED_TOKENS_PER_BATCH = 2_048  # more is slower: less fits the cache, and more of it is padding
CHECKPOINT_BYTES = 8 * GB
CHECKPOINT_JSON_BYTES = 50 * MB  # config.json, tokenizer.json and their like, each
HUB_SECONDS = 10  # until a hub that does not answer is reported

# Activation exports
ACTIVATION_FILE_BYTES = 64 * GB  # stored members are mapped, not read into memory
ACTIVATION_BYTES = 8 * GB  # of a deflated activations member, as it is held in memory
COLUMN_BYTES = 500 * MB  # labels, ids or categories, unpacked
NPZ_MEMBERS = 1_000
NPZ_HEADER_BYTES = 10_000  # what numpy.load reads of a header, too
DEFLATE_RATIO = 200  # of a large member; real activations reach about 10, a bomb about 1,000
DEFLATE_RATIO_FROM = 16 * MB
ACTIVATION_MAGNITUDE = 10**100  # a square of it is still a float64

# Direction study
STUDY_REPEATS = 100_000

# Training runs
RUN_FILES = 20_000  # files of one folder that are looked at
RUN_DEPTH = 32  # folders below each other
RUN_FILE_BYTES = 500 * MB  # of one JSON, CSV, log, SQLite or event file
RUN_TEXT_BYTES = 16 * MB  # of one report, matrix, or table without numbers by step
RUN_FOLDER_BYTES = 4 * GB  # read of one folder in all
RUN_ROWS = 5_000_000  # log rows of one file
RUN_KEYS = 20_000  # different metrics of one file
MATRIX_CLASSES = 1_000
PREDICTION_ROWS = 2_000_000
PREDICTION_CLASSES = 1_000
ZIP_MEMBERS = 20_000
ZIP_NAME_CHARACTERS = 400
ZIP_BYTES = 1 * GB  # of all members that are read, unpacked

# Search demonstration
CLIMB_SEEDS = 10_000
CLIMB_BUDGET = 100_000  # evaluations of one seed
CLIMB_EVALUATIONS = 20_000_000  # seeds times budget, of one method
CLIMB_PAGE_EVALUATIONS = 2_000_000  # the same on a page
CLIMB_FANOUT = 1_000
CLIMB_LENGTH = 64  # tokens of a sequence
CLIMB_VOCABULARY = 64
CLIMB_SCALE = 100  # of noise and interactions, in logits
# Demo mode: smaller, since many visitors share one small machine
DEMO_BATCH_ROWS = 500
DEMO_UPLOAD_BYTES = 2 * MB

# Store
FEEDBACK_AT_ONCE = 10_000  # entries of one call
NAME_CHARACTERS = 200  # who corrected it

# Pages
UPLOAD_BYTES = 64 * MB
BATCH_CHARACTERS = 100 * MB  # of all texts of one batch
BATCHES_KEPT = 8  # in memory, for all sessions
BATCHES_KEPT_CHARACTERS = 2 * BATCH_CHARACTERS  # of all those batches
BATCHES_AT_ONCE = 4
TABLE_ROWS = 200  # of a table on a page at once
GROUPS_SHOWN = 20  # of a figure; the table below it lists GROUPS_LISTED
GROUPS_LISTED = 200
SHARED_TEXT_CHARACTERS = 2_000  # of one box, in a share link that includes the text
FILES_LISTED = 2_000  # below the data roots
ENTRIES_VISITED = 200_000  # files and folders looked at to list them


def check_size(size: int, limit: int, *, what: str, where: str, fix: str) -> None:
    """Raise InputError when `size` is over `limit` (both in bytes)."""
    if size > limit:
        shown, most = show_bytes(size), show_bytes(limit)
        if shown == most:  # a few bytes over
            shown, most = f"{size:,} bytes", f"{limit:,} bytes"
        raise InputError(f"{what} is {shown}", where=where, why=f"at most {most} is read", fix=fix)


def show_bytes(size: int) -> str:
    """`size` in the largest decimal unit that keeps it at 1 or more, for example "1.5 MB"."""
    for unit, name in ((GB, "GB"), (MB, "MB"), (KB, "kB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}" if size < 999.5 * unit else f"{size / unit:,.0f} {name}"
    return f"{size} bytes"
