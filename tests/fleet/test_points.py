"""Fleets whose secrets are points: a mesh for each person, certified on the bytes that are stored."""

import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import privacygames as pg
from fleets import forge, payloads_in
from privacygames.fleet import Fleet, PointFleet, add, compact, open_fleet, remove, update
from privacygames.fleet import design as design_fleet
from privacygames.fleet.person_design import design_packable_points
from privacygames.fleet.person_record import name_hash
from privacygames.fleet.point_fleet import decode_points, encode_points
from privacygames.fleet.point_record import certified_point_mechanism, encode_point_person
from privacygames.fleet.records import require_points
from privacygames.fleet.shared_problem import decode_shared, read_shared
from privacygames.mechanism import container_content, decode_record, encode_record, parse_container
from privacygames.points import Mesh, PointMechanism

TOWN = pg.Area.over((116.30, 39.90, 116.34, 39.92))
OUTPUTS = [(116.305, 39.905), (116.315, 39.915), (116.325, 39.905), (116.335, 39.915)]
EPSILON = 1.0
DETAILS = {"visits": None, "prior_from": "own"}


def people(count: int) -> dict[str, pg.PointPrior]:
    """People with three places each; the first of more people are the same."""
    return {
        f"user-{number}": pg.PointPrior(
            TOWN, np.random.default_rng(number).uniform((116.30, 39.90), (116.34, 39.92), (3, 2)), [5, 2, 1]
        )
        for number in range(count)
    }


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet") / "people"
    design_fleet(people(3), out=folder, observables=OUTPUTS, epsilon=EPSILON, default="pooled", jobs=1)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "fleet"))


def finer(mechanism: PointMechanism) -> PointMechanism:
    """The same person's mechanism on a mesh with smaller cells."""
    problem = mechanism.problem.with_mesh(mechanism.mesh.refined([0]).refined([1]))
    return design_packable_points(problem, mechanism.bounds)


def test_a_member_is_a_mechanism_for_points(made: Path) -> None:
    fleet = PointFleet(made)
    assert (len(fleet), sorted(fleet), fleet.has_default) == (3, sorted(people(3)), True)
    assert (fleet.secrets, fleet.outputs.round(9).tolist()) == (TOWN, [list(output) for output in OUTPUTS])
    assert (fleet.bounds.epsilon, fleet.per_user, str(fleet.epsilon_guarantee)[:8]) == (EPSILON, True, "1 per km")
    for name, prior in people(3).items():
        mechanism = fleet[name]
        best = pg.points.design(pg.PointProblem(prior, OUTPUTS), epsilon=EPSILON, prove_bound=False)
        assert mechanism.problem.prior == prior
        assert mechanism.keeps_epsilon(EPSILON)
        assert best.certificate.cost * (1 - 1e-6) <= mechanism.certificate.cost <= best.certificate.cost * (1 + 2e-3)
        assert "in 17 bits" in mechanism.certificate.provenance.solver
    assert fleet.sample("user-1", (116.312, 39.911)) in [tuple(output) for output in fleet.outputs.tolist()]
    assert np.shape(fleet.sample("user-1", [(116.312, 39.911), (116.0, 39.0)])) == (2, 2)
    assert fleet.verify() == 3
    assert fleet.verify(jobs=2) == 3
    again = pickle.loads(pickle.dumps(fleet))
    assert isinstance(again, PointFleet)
    assert (again.digest, again.sample("user-0", (116.32, 39.91))[0]) == (fleet.digest, pytest.approx(116.32, abs=0.02))
    assert fleet.prior_source("user-2") == DETAILS
    assert fleet.reopen().records_digest == fleet.records_digest


def test_people_are_small_and_no_record_has_the_region(made: Path) -> None:
    mechanism = PointFleet(made)["user-0"]
    controls, outputs = mechanism.weights.shape
    largest = max(len(payload) for payload in payloads_in(made).values())
    assert largest < controls * outputs * 3 + controls * 12 + 3000
    for payload in payloads_in(made).values():
        assert "region" not in decode_record(payload)[0]["mesh"]


@pytest.mark.parametrize("share", [None, 0.5])
def test_packed_mechanisms_keep_their_guarantees_and_cost_hardly_more(share: float | None) -> None:
    line = pg.Interval(0.0, 4.0)
    for points in ([1.0, 3.0], [0.2, 0.3, 3.9], [2.0]):
        problem = pg.PointProblem(pg.PointPrior(line, points), [0.0, 1.0, 2.0, 3.0, 4.0])
        blind = np.abs(np.subtract.outer(points, points)).mean(axis=1).min()
        bounds = pg.Bounds(epsilon=0.7, distortion=None if share is None or blind == 0 else share * float(blind))
        packed = design_packable_points(problem, bounds)
        assert packed.bounds == bounds
        assert packed.keeps_epsilon(0.7)
        best = pg.points.PointDesign(problem, bounds, prove_bound=False).mechanism()
        assert packed.certificate.cost <= best.certificate.cost * (1 + 5e-3) + 1e-9


def test_small_cells_need_all_bits_where_rounding_would_cost_too_much() -> None:
    """Slopes are differences divided by the side of a cell: at a thousandth of 1/ε they need more than 17 bits."""
    line = pg.Interval(0.0, 0.05)
    problem = pg.PointProblem(pg.PointPrior(line, [0.01, 0.04]), [0.0, 0.05], mesh=Mesh(line, 20, degree=2))
    mechanism = design_packable_points(problem, pg.Bounds(epsilon=1.0))
    assert mechanism.keeps_epsilon(1.0)
    assert "bits" not in mechanism.certificate.provenance.solver


@pytest.mark.parametrize("halved", [False, True])
def test_everybody_may_share_a_mesh_that_is_stored_once(tmp_path: Path, halved: bool) -> None:
    mesh = Mesh(TOWN, 2, 1, degree=2)
    mesh = mesh.refined([0]) if halved else mesh
    fleet = design_fleet(people(2), out=tmp_path / "f", observables=OUTPUTS, mesh=mesh, epsilon=EPSILON, jobs=1)
    assert fleet["user-1"].mesh == mesh
    for payload in payloads_in(tmp_path / "f").values():
        header, arrays = decode_record(payload)
        assert "mesh" not in header
        assert not {"lines_0", "cells"} & set(arrays)
    assert PointFleet(tmp_path / "f").verify() == 2
    with pytest.raises(pg.InvalidProblem, match="other spaces, costs, distances or guarantees"):
        design_fleet(people(2), out=tmp_path / "f", observables=OUTPUTS, epsilon=EPSILON, jobs=1)


def test_a_person_may_have_a_mesh_with_halved_cells(folder: Path) -> None:
    shared = require_points(decode_shared(read_shared(folder)))
    mechanism = finer(PointFleet(folder)["user-1"])
    assert len(set(mechanism.mesh.tree.cells[:, 0].tolist())) > 1
    record = encode_point_person("user-1", mechanism, DETAILS, shared)
    assert certified_point_mechanism(record, shared).digest == mechanism.digest
    forge(folder, {"user-1": record})
    fleet = PointFleet(folder)
    assert fleet.verify() == 3
    assert fleet["user-1"].mesh == mechanism.mesh
    assert fleet.sample("user-1", (116.301, 39.901)) in [tuple(output) for output in fleet.outputs.tolist()]


def test_weights_that_break_the_guarantee_are_noticed_before_they_are_used(folder: Path) -> None:
    """A record whose checksums all fit, and weights of another ε."""
    shared = require_points(decode_shared(read_shared(folder)))
    corners = pg.PointPrior(TOWN, [OUTPUTS[0], OUTPUTS[-1]])
    other = pg.points.design(pg.PointProblem(corners, OUTPUTS), epsilon=1.1, prove_bound=False)
    assert not other.constant
    forge(folder, {"user-1": encode_point_person("user-1", other, DETAILS, shared)})
    fleet = PointFleet(folder)
    uses: list[Callable[[], Any]] = [
        fleet.verify,
        lambda: fleet["user-1"],
        lambda: fleet.sample("user-1", (116.31, 39.91)),
        lambda: fleet.row_sampler(pa.array(["user-1"])).draw(fleet.encode([(116.31, 39.91)]), words(1)),
    ]
    for use in uses:
        with pytest.raises(pg.GuaranteeViolated, match="faster between points than epsilon allows"):
            use()
    assert fleet.sample("user-2", (116.31, 39.91)) is not None


def test_a_fleet_for_more_distortion_than_there_is_says_who_cannot_be_served(tmp_path: Path) -> None:
    sure = {**people(2), "sure": pg.PointPrior(TOWN, [(116.31, 39.91)])}
    with pytest.raises(pg.SolveFailed, match=r"1 of 3 people have no mechanism.*Infeasible"):
        design_fleet(sure, out=tmp_path / "f", observables=OUTPUTS, epsilon=EPSILON, distortion=0.1, jobs=1)
    fleet = design_fleet(people(2), out=tmp_path / "f", observables=OUTPUTS, epsilon=EPSILON, distortion=0.1, jobs=1)
    assert fleet["user-0"].certificate.verification.distortion >= 0.1


def words(rows: int, seed: int = 0) -> Callable[[int], Any]:
    """Random words, the same for a number however often they are asked for."""
    return lambda number: np.random.default_rng([seed, number]).integers(0, 2**64, rows, dtype=np.uint64)


def test_draws_of_rows_are_the_members_draws(made: Path) -> None:
    """Two people at two points, in one batch; each output as likely as in their own mechanism."""
    fleet, rows = PointFleet(made), 40_000
    point = {"user-0": (116.3111, 39.9055), "user-2": (116.3333, 39.9177)}
    users = ["user-0", "user-2"] * rows
    codes = fleet.encode([point[user] for user in users])
    sampler = fleet.row_sampler(pa.array(users))
    drawn = sampler.draw(codes, words(2 * rows))
    for number, (name, place) in enumerate(point.items()):
        counts = np.bincount(drawn[number::2], minlength=4)
        assert chisquare(counts, fleet[name].probabilities([place])[0] * rows).pvalue > 1e-4
    assert np.array_equal(sampler.draw(codes, words(2 * rows)), drawn)
    order = np.random.default_rng(1).permutation(2 * rows)
    shuffled = fleet.row_sampler(pa.array([users[row] for row in order]))
    assert np.array_equal(shuffled.draw(codes[order], lambda number: words(2 * rows)(number)[order]), drawn[order])
    assert len(np.unique(sampler.tweak(codes))) == 2
    same_point = fleet.encode([point["user-0"]] * 2)
    assert len(np.unique(fleet.row_sampler(pa.array(["user-0", "user-2"])).tweak(same_point))) == 2


def test_rows_of_unknown_people_are_refused_unless_there_is_a_default(made: Path) -> None:
    users = pa.array(["user-0", "stranger"])
    with pytest.raises(pg.UnknownLabel, match="1 of 2 people are not in this fleet"):
        PointFleet(made).row_sampler(users)
    open_to_all = PointFleet(made, unknown="default")
    sampler = open_to_all.row_sampler(users)
    assert len(sampler.draw(open_to_all.encode([(116.31, 39.91)] * 2), words(2))) == 2
    pooled = open_to_all["stranger"].problem.prior
    assert len(pooled) == 9
    assert pooled.probabilities.sum() == pytest.approx(1)
    with pytest.raises(pg.UnknownLabel, match="none of the 3"):
        PointFleet(made)["stranger"]


@settings(deadline=None)
@given(st.floats(0, 1), st.floats(0, 1))
def test_codes_of_points_move_them_by_less_than_is_said(x: float, y: float) -> None:
    for region in (pg.Area(15.0, 8.0), pg.Interval(-3.0, 7.0)):
        low = np.zeros(region.dimension) if region.dimension == 2 else np.array([-3.0])
        point = low + np.array([x, y])[: region.dimension] * region.lengths
        codes = encode_points(region, point[None] if region.dimension == 2 else point)
        assert 0 <= codes[0] < 2**62
        moved = np.hypot.reduce(decode_points(region, codes)[0] - (point - low))
        assert moved <= np.hypot.reduce(region.lengths) / (2 * (2**31 - 1)) * (1 + 1e-6) + 1e-12


def test_people_are_added_changed_and_removed(folder: Path) -> None:
    before, fleet = payloads_in(folder), PointFleet(folder)
    new = {"ann": pg.PointPrior(TOWN, [(116.31, 39.91), (116.32, 39.905)])}
    with pytest.raises(pg.InvalidProblem, match=r"are points: give PointFleet\(folder\)"):
        add(folder, new, jobs=1)  # type: ignore[arg-type]
    grown = add(fleet, new, jobs=1)
    assert isinstance(grown, PointFleet)
    assert grown["ann"].problem.prior == new["ann"]
    assert {name: payload for name, payload in payloads_in(folder).items() if name in before} == before
    with pytest.raises(pg.StaleFleet):
        fleet.sample("user-0", (116.31, 39.91))
    moved = update(grown, {"ann": people(1)["user-0"]}, jobs=1)
    assert moved["ann"].problem.prior == people(1)["user-0"]
    fewer = remove(moved, ["user-1", "ann"], jobs=1)
    assert sorted(fewer) == ["user-0", "user-2"]
    everybody = b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())
    assert people(3)["user-1"].xy.tobytes() not in everybody
    pooled = PointFleet(folder, unknown="default")["anybody"].problem.prior
    assert len(pooled) == 6  # designed again, without those who left
    packed = compact(fewer)
    assert isinstance(packed, PointFleet)
    assert packed.verify() == 2


def test_a_design_again_designs_nobody_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privacygames.fleet.person_design.design_packable_points", None)
    before = payloads_in(folder)
    again = design_fleet(people(3), out=folder, observables=OUTPUTS, epsilon=EPSILON, default="pooled", jobs=1)
    assert len(again) == 3
    assert payloads_in(folder) == before


def test_each_kind_of_folder_is_opened_by_its_class(made: Path, tmp_path: Path) -> None:
    cells = design_fleet({"ann": pg.Prior.uniform(pg.Numbers([1, 2, 3]))}, out=tmp_path / "cells", epsilon=1.0, jobs=1)
    assert type(open_fleet(made)) is PointFleet
    assert type(open_fleet(cells)) is Fleet
    with pytest.raises(pg.InvalidFile, match="are points"):
        Fleet(made)
    with pytest.raises(pg.InvalidFile, match="are cells or labels"):
        PointFleet(tmp_path / "cells")


def test_visits_are_taken_as_they_are(tmp_path: Path) -> None:
    visits = pg.traces.synthetic(users=3, days=5, seed=1)
    area = pg.Area.over(visits.public_box())
    outputs = area.coordinates(area.lattice((3, 2)))
    fleet = design_fleet(visits, area=area, out=tmp_path / "f", observables=outputs, epsilon=0.5, jobs=1)
    for user in visits.users:
        mine = visits.points(user, area)
        assert fleet[user].problem.prior == pg.PointPrior(area, mine)
        assert fleet.prior_source(user) == {"visits": len(mine), "prior_from": "own"}
    most = max(len(visits.points(user, area)) for user in visits.users)
    with pytest.raises(pg.InvalidProblem, match=r"of 3 people have fewer than .* visits in the area"):
        add(fleet, visits, min_visits=most + 1, jobs=1)
    with pytest.raises(pg.InvalidProblem, match="already, with another prior"):
        add(fleet, visits, min_visits=most, little_data="pooled", jobs=1)


LINE = pg.Interval(0.0, 4.0)
ON_LINE = {"ann": pg.PointPrior(LINE, [1.0])}


@pytest.mark.parametrize(
    ("given_people", "options", "message"),
    [
        (ON_LINE, {}, "observables must say what may be released"),
        (ON_LINE, {"observables": [1.0], "distinguishability": "hamming"}, "distinguishability is the distance"),
        (ON_LINE, {"observables": [1.0], "cost": lambda points, outputs: points @ outputs.T}, "share a named cost"),
        (ON_LINE, {"observables": [1.0], "cost": "hamming"}, "cost 'hamming' is not known"),
        ({**ON_LINE, "bob": pg.Prior.uniform(pg.Numbers([1, 2]))}, {"observables": [1.0]}, "share one space"),
        ({**ON_LINE, "bob": pg.PointPrior(TOWN, OUTPUTS)}, {"observables": [1.0]}, "share one space"),
        (
            {"ann": pg.PointProblem(ON_LINE["ann"], [1.0]), "bob": pg.PointProblem(ON_LINE["ann"], [2.0])},
            {},
            "differ in the prior only",
        ),
        (pg.traces.VisitCounts({"ann": {0: 3}}), {"area": TOWN, "observables": OUTPUTS}, "counted per cell"),
        (pg.traces.synthetic(users=1, days=2), {"area": TOWN, "observables": OUTPUTS, "smoothing": 1.0}, "smoothing"),
        (pg.traces.synthetic(users=1, days=2), {"area": pg.Area(2, 2), "observables": [(1, 1)]}, "over degrees"),
        (pg.traces.synthetic(users=1, days=2), {"area": TOWN, "grid": pg.Grid(2, 2)}, "not both"),
        (pg.traces.synthetic(users=1, days=2), {}, "need grid"),
        ({"ann": pg.Prior.uniform(pg.Numbers([1, 2]))}, {"mesh": Mesh(LINE, 2)}, "mesh is for secrets that are points"),
    ],
)
def test_people_who_do_not_fit_are_refused(tmp_path: Path, given_people: Any, options: Any, message: str) -> None:
    with pytest.raises(pg.InvalidProblem) as caught:
        design_fleet(given_people, out=tmp_path / "f", epsilon=1.0, jobs=1, **options)
    assert message in str(caught.value)
    assert not (tmp_path / "f").exists()


odd: st.SearchStrategy[Any] = st.sampled_from([None, -1, 0, 2.5, "x", [], {}, True, 10**30])


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_changed_records_are_refused_or_keep_the_guarantee(made: Path, data: st.DataObject) -> None:
    """One value of the header, or one number of an array, is another one."""
    shared = require_points(decode_shared(read_shared(made)))
    header, arrays = decode_record(payloads_in(made)[name_hash("user-1")])
    arrays = {name: np.array(array) for name, array in arrays.items()}
    entry = data.draw(st.sampled_from(["header", "mesh", *arrays]))
    if entry == "header":
        header = header | {data.draw(st.sampled_from(sorted(set(header) - {"arrays", "name"}))): data.draw(odd)}
    elif entry == "mesh":
        header = header | {"mesh": {"degree": data.draw(odd)}}
    elif data.draw(st.booleans()):
        arrays[entry] = arrays[entry][: data.draw(st.integers(0, len(arrays[entry])))]
    else:
        at = data.draw(st.integers(0, arrays[entry].size - 1))
        flat = arrays[entry].reshape(-1)
        change = data.draw(st.sampled_from([np.add, np.subtract, np.multiply]))
        with np.errstate(over="ignore"):
            flat[at] = change(flat[at], data.draw(st.sampled_from([0, 1, 2])), dtype=flat.dtype)
    record = encode_record({key: value for key, value in header.items() if key != "arrays"}, arrays)
    try:
        mechanism = certified_point_mechanism(record, shared)
    except (pg.InvalidFile, pg.GuaranteeViolated):
        return
    assert mechanism.keeps_epsilon(EPSILON)
    assert mechanism.secrets == TOWN


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_changed_shared_files_are_refused_or_complete(made: Path, data: st.DataObject) -> None:
    header, arrays = parse_container(read_shared(made))
    plain = {key: value for key, value in header.items() if key not in ("arrays", "format")}
    place = data.draw(st.sampled_from(sorted(plain)))
    if isinstance(plain[place], dict) and data.draw(st.booleans()):
        key = data.draw(st.sampled_from(sorted(plain[place])))
        plain[place] = plain[place] | {key: data.draw(odd)}
    else:
        plain[place] = data.draw(odd)
    content = b"".join(container_content(plain, arrays))
    try:
        decoded = require_points(decode_shared(content))
    except pg.InvalidFile:
        return
    assert decoded.problem.region.dimension in (1, 2)
    assert len(decoded.problem.outputs) > 0
