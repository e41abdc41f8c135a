"""Beyond one study: over the layers, against another study of the same examples, against another direction."""

from __future__ import annotations

import shlex
from collections.abc import Callable

import streamlit as st

from refusal_core.activations.npz import read_export
from refusal_core.direction.compare import StudyComparison, compare
from refusal_core.direction.cosine import DirectionCosine, cosine
from refusal_core.direction.intervals import NotAvailable
from refusal_core.direction.record import Record
from refusal_core.errors import InputError, RefusalCoreError, one_line
from refusal_core.jobs import Job
from refusal_core.limits import TABLE_ROWS
from refusal_core.plots import study_beyond as plots
from ui import cache, show, study_files, study_layers, study_side
from ui.study import Asked, Offered, path_of
from ui.study_keep import Keeper

HISTORY = "study_history"  # tokens of the studies that this session has seen, the latest last


def draw(record: Record, offered: Asked | None, keeper: Keeper) -> None:
    """Three comparisons, each with the files or studies it needs."""
    st.subheader("Beyond this study", anchor=False)
    layers, other, directions = st.tabs(["Over the layers", "Against another study", "Against another direction"])
    with layers:
        study_layers.draw(offered, demo=keeper.demo)
    with other:
        _other(record, keeper)
    with directions:
        _directions(offered, keeper)


def _other(record: Record, keeper: Keeper) -> None:
    if record.examples is None:
        st.markdown("One pooled file has no test examples to compare on.")
        return
    st.markdown("Two studies of the same test examples, paired by id: another layer, model or training file.")
    choices = _choices(record, keeper)
    if not choices:
        st.markdown("There is no other study yet: run one of the same test examples, or store one.")
        return
    chosen = st.selectbox(
        "The other study",
        list(choices),
        format_func=lambda key: choices[key][0],
        index=None,
        key="study_other",
        placeholder="Choose one",
    )
    if chosen is None:
        return
    try:
        found = compared(record, choices[chosen][1]())
    except RefusalCoreError as error:
        show.problem("These two cannot be compared", str(error))
        return
    show.text(found.headline)
    st.markdown(":small[A is the study above, B the one chosen here.]")
    for warning in found.warnings:
        show.note(warning)
    show.figure(plots.differences(found), key="study_differences")
    _draw_pairs(found)


def _draw_pairs(found: StudyComparison) -> None:
    if not isinstance(found.sign_flip, NotAvailable):
        show.sentence(
            "Swapping A and B in whole categories gives p = {p} ({patterns} patterns).",
            p=f"{found.sign_flip.p_value:.2g}",
            patterns=f"{found.sign_flip.patterns:,}",
        )
    show.sentence("Right in A alone: {a}; in B alone: {b}.", a=f"{len(found.only_a):,}", b=f"{len(found.only_b):,}")
    only = [{"id": name, "right in": side} for side, ids in (("A", found.only_a), ("B", found.only_b)) for name in ids]
    if only:
        alt = "Examples that one study alone calls right."
        st.dataframe(only[:TABLE_ROWS], hide_index=True, height=220, key="study_only", alt=alt)
    written = found.to_json()
    show.download("Download comparison.json", written, "comparison.json", key="study_compare_json")


def compared(a: Record, b: Record) -> StudyComparison:
    """Raises InputError when the test examples differ, and for a study of one pooled file."""
    if b.examples is None:
        raise InputError("the other study is of one pooled file", fix="choose one with a test file")
    return compare(a.study, b.study, a.test_export(), b.test_export(), seed=a.study.seed)


def _choices(record: Record, keeper: Keeper) -> dict[str, tuple[str, Callable[[], Record]]]:
    """Digest to (words, how to get it): studies of this session, then stored ones; without the one on screen."""
    found: dict[str, tuple[str, Callable[[], Record]]] = {}
    for token in reversed(st.session_state.get(HISTORY, ())):
        task = cache.studies().get(token)
        if task and task.result and task.result.sha256 != record.sha256:
            words = _words(task.title, task.result.study.headline)
            found[task.result.sha256] = (words, lambda task=task: task.result)
    if keeper.demo:
        return found
    try:
        for one in keeper.open().studies.latest(TABLE_ROWS):
            if one.digest != record.sha256 and one.digest not in found:
                words = f"stored: {_words(one.title, one.headline)}"
                found[one.digest] = (words, lambda one=one: keeper.record(one.digest))
    except RefusalCoreError as error:
        show.note(str(error))
    return found


def _words(title: str, headline: str) -> str:
    return f"{one_line(title, 70)}: {one_line(headline, 90)}"


def _directions(offered: Asked | None, keeper: Keeper) -> None:
    st.markdown(
        "The cosine of the direction of the training file above with that of a second file, between what noise allows "
        "at most (split halves) and what shuffled labels give."
    )
    try:
        second = study_files.draw("other", demo=keeper.demo)
        if offered is None or second is None:
            st.markdown("It needs a training file above and a second file here, with the same names of members.")
        else:
            _draw_cosine_button(offered, second)
    except RefusalCoreError as error:
        show.problem("This file cannot be compared", str(error))
    result: DirectionCosine | None = study_side.latest(study_side.COSINE)
    if result is not None:
        _draw_cosine(result)


def _draw_cosine_button(offered: Asked, second: Offered) -> None:
    reading, peek = offered.reading, study_files.looked_into(second)
    key = reading.columns.get("activations", "activations")
    if key not in peek.members:
        raise InputError(f'it has no member "{key}"', where=second.name, fix="give a file with the names of the first")
    layers, other_layer = peek.layers(key), None
    if layers is not None:
        other_layer = st.number_input(
            "Layer of the second file, from 0",
            0,
            layers - 1,
            min(reading.layer_index or 0, layers - 1),
            width=260,
            key=f"study_other_layer_{study_files.suffix((second,))}",
        )
    st.markdown("The same as this command:")
    show.code(cosine_command(offered, second, other_layer), "bash")
    if st.button("Compare the directions", key="study_cosine"):
        _start_cosine(offered, second, other_layer)


def cosine_command(offered: Asked, second: Offered, other_layer: int | None) -> str:
    """The shell line that writes the same cosine.json."""
    reading = offered.reading
    words = ["python", "-m", "refusal_core.cli", "cosine", path_of(offered.files[0]), path_of(second)]
    words += [] if other_layer is None else [f"--other-layer-index={other_layer}"]
    words += [f"--repeats={offered.settings.repeats}", f"--seed={offered.settings.seed}"]
    words += [word for word in reading.arguments() if not word.startswith("--hold-out")]
    return shlex.join([*words, "--output=cosine.json"])


def _start_cosine(offered: Asked, second: Offered, other_layer: int | None) -> None:
    first, options = offered.files[0], study_side.options_of(offered)

    def work(job: Job) -> DirectionCosine:
        exports = [
            read_export(file.content, name=file.name, layer_index=place, job=job, **options)
            for file, place in ((first, offered.reading.layer_index), (second, other_layer))
        ]
        return cosine(*exports, offered.settings, job)

    study_side.start(study_side.COSINE, f"{first.shown} and {second.shown}", work)


def _draw_cosine(result: DirectionCosine) -> None:
    show.text(result.headline)
    for warning in result.warnings:
        show.note(warning)
    show.figure(plots.cosines(result), key="study_cosines")
    show.sentence(
        ":small[Without dimension {dimension}, which gives most, the cosine is {without}. Random vectors of {d} "
        "dimensions would have an sd of {sd}, a bar that is far too easy.]",
        dimension=result.without_top.dimension,
        without=f"{result.without_top.cosine:.2f}",
        d=f"{result.inputs['a']['dimensions']:,}",
        sd=f"{result.random_sd:.3f}",
    )
    show.download("Download cosine.json", result.to_json(), "cosine.json", key="study_cosine_json")
