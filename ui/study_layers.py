"""Over the layers: the held-out score at each, with a p-value that pays for choosing the best."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import streamlit as st

from refusal_core.activations.layers import open_layers
from refusal_core.activations.reading import Reading
from refusal_core.direction.result import Settings
from refusal_core.direction.sweep import sweep
from refusal_core.direction.sweep_result import LayerNull, LayerScore, Sweep, with_interval
from refusal_core.jobs import Job
from refusal_core.limits import GROUPS_LISTED
from refusal_core.plots import study_beyond as plots
from ui import cache, inputs, show, study_files, study_side
from ui.study import Asked, Offered, path_of


def draw(offered: Asked | None, *, demo: bool) -> None:
    """The files that hold the layers, the button, and the curve."""
    st.markdown(
        "The best of many layers looks better than it is. A sweep scores the same shuffles at every layer, so that the "
        "p-value of the best one pays for the choice."
    )
    if offered and offered.reading.layer_index is not None:
        trains, tests = [offered.files[0]], list(offered.files[1:])
    else:
        offered = None
        trains, tests = ([], []) if demo else _layer_files()
    if trains:
        st.markdown("The same as this command:")
        show.code(sweep_command(offered, trains, tests), "bash")
        if st.button("Sweep the layers", key="study_sweep"):
            _start(offered, trains, tests)
    elif offered is None:
        st.markdown(
            "Give files of shape [examples, layers, dimensions] above; or, of one file a layer, choose several "
            "below a data root."
        )
    result: Sweep | None = study_side.latest(study_side.LAYERS)
    if result is not None:
        _draw(result)


def sweep_command(offered: Asked | None, trains: Sequence[Offered], tests: Sequence[Offered]) -> str:
    """The shell line that writes the same sweep.json: all layers, with nothing held out of a pooled file."""
    settings, reading = (offered.settings, offered.reading) if offered else (Settings(), Reading())
    words = ["python", "-m", "refusal_core.cli", "sweep", "--train", *map(path_of, trains)]
    words += ["--test", *map(path_of, tests)] if tests else []
    words += [f"--repeats={settings.repeats}", f"--seed={settings.seed}"]
    words += [word for word in reading.arguments() if not word.startswith(("--hold-out", "--layer-index"))]
    return shlex.join([*words, "--output=sweep.json"])


def _layer_files() -> tuple[list[Offered], list[Offered]]:
    """Files of one layer each, in the order they were chosen."""
    files = inputs.below(cache.activation_files, demo=False)
    if not files:
        return [], []
    left, right = st.columns(2)
    trains = left.multiselect("Training files, one a layer, in order", files, key="study_layer_trains")
    tests = right.multiselect("Test files, the same layers", files, key="study_layer_tests")
    return [study_files.below_root(name) for name in trains], [study_files.below_root(name) for name in tests]


def _start(offered: Asked | None, trains: Sequence[Offered], tests: Sequence[Offered]) -> None:
    settings = offered.settings if offered else Settings()
    options = study_side.options_of(offered) if offered else {}

    def opened(files: Sequence[Offered], job: Job):
        contents, names = [file.content for file in files], [file.name for file in files]
        return open_layers(contents, names=names, job=job, **options) if files else None

    title = " and ".join(file.shown for file in (*trains[:1], *tests[:1]))
    study_side.start(
        study_side.LAYERS, title, lambda job: sweep(opened(trains, job), opened(tests, job), settings, None, job)
    )


def _draw(result: Sweep) -> None:
    show.text(result.headline)
    for warning in result.warnings:
        show.note(warning)
    show.figure(plots.layers(result), key="study_layers_figure")
    st.markdown(
        ":small[Line: held-out score, with its 95% interval over categories; grey band: 95% of the shuffles at that "
        "layer; dashed: what 95% of the shuffles stay under at their best layer; dotted: categories left out of the "
        "training file, which alone may choose a layer.]"
    )
    with st.expander("As a table"):
        st.dataframe(
            [_row(one, result.null) for one in result.layers[:GROUPS_LISTED]],
            hide_index=True,
            key="study_layers_table",
            alt="Each layer with its score, interval and p-values.",
        )
    show.download("Download sweep.json", result.to_json(), "sweep.json", key="study_layers_json")


def _row(one: LayerScore, null: str) -> dict[str, object]:
    if one.problem:
        return {"layer": one.layer, "balanced accuracy": one.problem}
    found = one.nulls.get(null)
    p = (found.p_value, found.adjusted_p_value) if isinstance(found, LayerNull) else (None, None)
    return {
        "layer": one.layer,
        "balanced accuracy": with_interval(one),
        "AUROC": one.auroc,
        "left out of training": one.left_out_balanced_accuracy,
        "p": p[0],
        "p, over all layers": p[1],
    }
