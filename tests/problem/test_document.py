"""Every way the problem file can describe spaces, priors and observables."""

from pathlib import Path
from typing import Any

import pytest

import privacygames as pg
from privacygames.problem import ProblemFile
from privacygames.spaces import find_label


def read(folder: Path, text: str) -> pg.Problem:
    (folder / "p.toml").write_text(text)
    return ProblemFile(folder / "p.toml").problem


def test_grid_over_degrees(tmp_path: Path) -> None:
    text = (
        '[space]\nkind="grid"\ncolumns=2\nrows=2\nbox=[0,0,1,1]\n[prior]\nuniform=true\n[problem]\ndistance="haversine"'
    )
    assert read(tmp_path, text).distance[0, 1] == pytest.approx(55.6, abs=0.1)


def test_numbers_and_intervals(tmp_path: Path) -> None:
    text = '[space]\nkind="numbers"\nfrom=17\nto=20\n[prior]\ncounts=[1,2,3,4]\n[problem]\ncost="absolute"\n'
    problem = read(tmp_path, text + "[observables]\ninterval=2\n")
    assert problem.prior.probabilities.tolist() == [0.1, 0.2, 0.3, 0.4]
    assert problem.observables.labels == ("17–18", "19–20")
    listed = read(tmp_path, '[space]\nkind="numbers"\nvalues=[1.5, 2]\n[prior]\nweights=[0.25, 0.75]\n')
    assert listed.space.labels == (1.5, 2)


def test_categories_and_subsets(tmp_path: Path) -> None:
    text = '[space]\nkind="categories"\nlabels=["flu","cold","none"]\n[prior]\nuniform=true\n[observables]\n'
    assert len(read(tmp_path, text + "at_most=2\n").observables) == 6
    chosen = read(tmp_path, text + 'subsets=[["flu","cold"],["none"]]\nreading="min"\n')
    assert chosen.cost.tolist() == [[0, 0, 1], [1, 1, 0]]


def test_sets_graphs_and_distances(tmp_path: Path) -> None:
    sets = read(tmp_path, '[space]\nkind="sets"\nsets=[["a"],["a","b"]]\n[prior]\nuniform=true\n')
    assert sets.distance[0, 1] == 0.5
    assert find_label(sets.space, "{a, b}") == frozenset({"a", "b"})
    graph = read(tmp_path, '[space]\nkind="graph"\nedges=[["x","y",3]]\n[prior]\ncounts={x=1}\n')
    assert graph.distance[0, 1] == 3
    given = read(tmp_path, '[space]\nkind="distances"\nlabels=["p","q"]\nmatrix=[[0,2],[1,0]]\n[prior]\nuniform=true\n')
    assert given.distance.tolist() == [[0, 2], [1, 0]]


def test_blocks(tmp_path: Path) -> None:
    text = '[space]\nkind="grid"\ncolumns=4\nrows=2\n[prior]\nuniform=true\n[observables]\nblock=[2,2]\n'
    assert len(read(tmp_path, text).observables) == 2


GRID = '[space]\nkind="grid"\ncolumns=2\nrows=1\n[prior]\n'


def test_prior_from_csv_with_counts(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("user,cell,visits\n7,0,3\n7,1,1\n8,1,9\n")
    prior = 'csv="v.csv"\nlabel="cell"\ncount="visits"\nformat="cell-{}"\nwhere={user="7"}\n'
    assert read(tmp_path, GRID + prior).prior.probabilities.tolist() == [0.75, 0.25]
    smoothed = read(tmp_path, GRID + prior + "smoothing=2\n").prior.probabilities.tolist()
    assert smoothed == [5 / 8, 3 / 8]


def test_prior_from_csv_of_visits_and_points(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("label,x,y\ncell-0,0.5,0.5\ncell-0,1.5,0.2\ncell-1,9,9\n")
    assert read(tmp_path, GRID + 'csv="v.csv"\n').prior.probabilities.tolist() == [2 / 3, 1 / 3]
    points = GRID + 'csv="v.csv"\nx="x"\ny="y"\n'
    assert read(tmp_path, points + 'outside="drop"\n').prior.probabilities.tolist() == [0.5, 0.5]
    with pytest.raises(pg.InvalidProblem, match="1 of 3 points lie outside"):
        read(tmp_path, points)
    (tmp_path / "v.csv").write_text("x,y,n\n0.5,0.5,3\n1.5,0.2,1\n")
    assert read(tmp_path, points + 'count="n"\n').prior.probabilities.tolist() == [0.75, 0.25]


@pytest.mark.parametrize(
    ("content", "prior", "message"),
    [
        ("label\nhideout\n", 'csv="v.csv"\n', "v.csv, line 2"),
        ("place\ncell-0\n", 'csv="v.csv"\n', "no column 'label'"),
        ("label,n\ncell-0,many\n", 'csv="v.csv"\ncount="n"\n', "line 2 has no number"),
        ("label\n", 'csv="v.csv"\n', "no visits"),
        ("label\n\xff", 'csv="none.csv"\n', "cannot be read"),
    ],
)
def test_bad_csv(tmp_path: Path, content: str, prior: str, message: str) -> None:
    (tmp_path / "v.csv").write_text(content)
    with pytest.raises(pg.InvalidProblem, match=message) as caught:
        read(tmp_path, GRID + prior)
    assert "hideout" not in str(caught.value)


def test_a_problem_file_is_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from privacygames.problem import ProblemFile
    from privacygames.text_files import read_toml

    path = tmp_path / "p.toml"
    path.write_text(
        '[space]\nkind = "numbers"\nfrom = 1\nto = 4\n[prior]\nuniform = true\n[bounds]\nepsilon = 0.5\n'
        '[[adversary]]\nname = "sure"\nsharpened = { strength = 4.0, places = 2 }\n'
    )
    reads: list[Path] = []

    def counted(path: Path) -> dict[str, Any]:
        reads.append(path)
        return read_toml(path)

    monkeypatch.setattr("privacygames.problem.document.read_toml", counted)
    file = ProblemFile(path)
    assert file.bounds == {"epsilon": 0.5}
    assert [adversary.name for adversary in file.adversaries] == ["sure"]
    assert file.adversaries_for(file.problem) == file.adversaries
    assert file.prior_over(file.problem.space) == file.problem.prior
    assert reads == [path]
