import pytest

from refusal_core.cli import main
from refusal_core.climb import Settings, demonstrate
from refusal_core.climb.report import FILES, files, output_folder
from refusal_core.errors import InputError
from refusal_core.plots.climb_report import climb_report

SMALL = ["run", "--seeds", "4", "--budget", "60", "--fanout", "3", "--noise", "0.2"]


# The folder


def test_a_folder_of_an_earlier_run_is_replaced_as_a_whole(tmp_path):
    out = tmp_path / "r"
    assert main([*SMALL, "--out", str(out)]) == 0
    assert sorted(p.name for p in out.iterdir()) == sorted(FILES)
    before = (out / "report.json").read_bytes()
    assert main([*SMALL, "--policy-seed", "1", "--out", str(out)]) == 0
    assert (out / "report.json").read_bytes() != before
    assert [p.name for p in tmp_path.iterdir()] == ["r"]


def test_an_empty_folder_is_filled(tmp_path):
    assert main([*SMALL, "--out", str(tmp_path / "new")]) == 0
    (tmp_path / "empty").mkdir()
    assert main([*SMALL, "--out", str(tmp_path / "empty")]) == 0
    assert (tmp_path / "empty" / "report.json").read_bytes() == (tmp_path / "new" / "report.json").read_bytes()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("thesis.tex", "mine"),
        ("README.txt", "mine"),
        ("report.json", '{"schema": "another/1"}'),
        ("report.json", "[1]"),
        ("report.json", "not JSON"),
        ("report.html", "mine"),
    ],
)
def test_a_folder_that_holds_something_else_is_refused_before_the_work(tmp_path, capsys, monkeypatch, name, text):
    monkeypatch.setattr("refusal_core.commands.climb.demonstrate", lambda *a: pytest.fail("the work was begun"))
    (tmp_path / name).write_text(text)
    assert main([*SMALL, "--out", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert name in said
    assert [p.name for p in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == text


def test_force_leaves_other_files_where_they_are(tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    (tmp_path / "README.txt").write_text("mine")
    assert main([*SMALL, "--force", "--out", str(tmp_path)]) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([*FILES, "thesis.tex"])
    assert (tmp_path / "thesis.tex").read_text() == "mine"
    assert "SIMULATED" in (tmp_path / "README.txt").read_text()
    assert main([*SMALL, "--force", "--out", str(tmp_path / "new")]) == 0


def test_a_run_that_fails_leaves_the_old_report(tmp_path, monkeypatch):
    out = tmp_path / "r"
    assert main([*SMALL, "--out", str(out)]) == 0
    before = {p.name: p.read_bytes() for p in out.iterdir()}

    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("refusal_core.commands.climb.climb_report", stopped)
    for more in ([], ["--force"]):
        assert main([*SMALL, "--policy-seed", "9", *more, "--out", str(out)]) == 130
        assert {p.name: p.read_bytes() for p in out.iterdir()} == before
        assert [p.name for p in tmp_path.iterdir()] == ["r"]


def test_a_file_in_its_place_is_refused(tmp_path):
    (tmp_path / "r").write_text("mine")
    for force in (False, True):
        with pytest.raises(InputError, match="it is a file"), output_folder(str(tmp_path / "r"), force=force):
            pass


# The command


def test_the_command_says_what_it_found(tmp_path, capsys):
    assert main([*SMALL, "--out", str(tmp_path / "r")]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    demonstration = demonstrate(Settings(seeds=4, budget=60, fanout=3, noise=0.2))
    assert "imulated" in captured.err
    assert demonstration.sentence() in captured.err
    for paired in demonstration.paired:
        assert f"{paired.difference}, {paired.verdict}" in captured.err


def test_the_command_writes_what_the_functions_give(tmp_path):
    options = [
        "--length",
        "5",
        "--vocabulary",
        "6",
        "--interactions",
        "0.5",
        "--policy-seed",
        "3",
        "--objective",
        "lower",
    ]
    assert main([*SMALL, *options, "--out", str(tmp_path / "r")]) == 0
    chosen = Settings(
        seeds=4,
        budget=60,
        fanout=3,
        noise=0.2,
        length=5,
        vocabulary=6,
        interactions=0.5,
        policy_seed=3,
        objective="lower",
    )
    demonstration = demonstrate(chosen)
    for name, text in files(demonstration, climb_report(demonstration)).items():
        assert (tmp_path / "r" / name).read_bytes().decode() == text


@pytest.mark.parametrize(
    "options",
    [
        ["--seeds", "0"],
        ["--seeds", "many"],
        ["--budget", "-5"],
        ["--fanout", "0"],
        ["--noise", "nan"],
        ["--noise", "-1"],
        ["--length", "0"],
        ["--vocabulary", "1"],
        ["--objective", "up"],
        ["--policy-seed", "-1"],
        ["--seeds", "10000", "--budget", "100000"],
        ["--unknown", "1"],
    ],
)
def test_bad_values_are_one_sentence_and_exit_2(tmp_path, capsys, options):
    try:
        code = main(["run", *options, "--out", str(tmp_path / "r")])
    except SystemExit as stopped:
        code = stopped.code
    said = capsys.readouterr().err
    assert code == 2
    assert said.count("\n") == 1
    assert options[-2].strip("-") in said
    assert not (tmp_path / "r").exists()


def test_out_is_required(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["run"])
    assert stopped.value.code == 2
    assert "--out" in capsys.readouterr().err
