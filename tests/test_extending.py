"""A contributor's pieces, added from outside: public names only, each used where a user would use it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import privacygames as pg
from privacygames.baselines import register
from privacygames.policies import Choice, Policy, PublicState
from privacygames.traces import RowBatch, TraceFormat, TraceSource

ILLNESSES = pg.Problem(pg.Prior.from_counts(pg.Categories(["flu", "cold", "none"]), [1, 2, 3]))


def truth_or_noise(problem: pg.Problem, epsilon: float) -> pg.Mechanism:
    """A toy baseline: the secret with probability 1 − e^−ε, otherwise any label."""
    size, keep = len(problem.space), 1 - np.exp(-epsilon)
    return pg.Mechanism.from_probabilities(
        problem, keep * np.eye(size) + (1 - keep) / size, origin=f"truth or noise {epsilon:g}"
    )


@pytest.fixture
def baseline() -> Iterator[str]:
    register("truth-or-noise", truth_or_noise)
    yield "truth-or-noise"
    del pg.baselines.BASELINES["truth-or-noise"]


def test_a_baseline_is_compared_by_name(baseline: str) -> None:
    names = [baseline, f"{baseline}+remap", "randomised-response", "optimal"]
    mechanisms = pg.calibrated_baselines(ILLNESSES, epsilon=1.0, names=names)
    compared = pg.compare(ILLNESSES, mechanisms, adversaries={"informed": ILLNESSES.prior})
    report = {row.mechanism_name: row.report for row in compared.rows}
    assert report[baseline].epsilon == pytest.approx(1.0, rel=2e-3)
    assert report["optimal"].cost <= report[baseline].cost + 1e-9
    curve = pg.trade_off(ILLNESSES, epsilons=[0.5, 1.0], names=[baseline])
    per = "per unit of the hamming distance"
    assert [row.label for row in curve.rows[::2]] == [f"{baseline} at epsilon {value} {per}" for value in ("0.5", "1")]
    assert baseline in pg.calibrated_baselines(ILLNESSES, epsilon=1.0)


def test_a_baseline_without_a_parameter() -> None:
    register("copy", pg.baselines.identity, parametrised=False)
    try:
        mechanism = pg.calibrated_baselines(ILLNESSES, epsilon=1.0, names=["copy"])["copy"]()
    finally:
        del pg.baselines.BASELINES["copy"]
    assert pg.metrics.expected_cost(mechanism, ILLNESSES) == 0


@pytest.mark.parametrize("name", ["optimal", "exponential", "mine+remap", "", 3])
def test_a_baseline_needs_a_name_of_its_own(name: Any) -> None:
    with pytest.raises(pg.InvalidProblem, match=r"already|name of a baseline"):
        register(name, truth_or_noise)
    with pytest.raises(pg.InvalidProblem, match="make must be"):
        register("mine", 3)  # type: ignore[arg-type]


class Clock(pg.Space):
    """A toy space: hours of the day, on a circle."""

    default_distance = "circular"

    def named_distances(self) -> Any:
        return {"circular": self.circular, **super().named_distances()}

    def circular(self, other: pg.Space) -> NDArray[np.float64]:
        gaps = np.abs(np.subtract.outer(np.array(other.labels, dtype=float), np.array(self.labels, dtype=float)))
        return np.asarray(np.minimum(gaps, 24 - gaps))

    def distance_unit(self, name: str) -> str:
        return "hours" if name == "circular" else ""


def decode_clock(table: Mapping[str, Any]) -> Clock:
    return Clock(table["hours"])


pg.register_space(
    "test-clock", Clock, keys=["hours"], encode=lambda space: {"hours": list(space.labels)}, decode=decode_clock
)


def test_a_space_is_designed_for_saved_and_loaded(tmp_path: Path) -> None:
    problem = pg.Problem(pg.Prior.from_counts(Clock([0, 8, 12, 23]), [1, 5, 2, 1]), cost="circular")
    assert problem.distance[0].tolist() == [0, 8, 12, 1]
    mechanism = pg.design(problem, epsilon=0.2)
    mechanism.save(tmp_path / "hour.pgm")
    loaded = pg.load(tmp_path / "hour.pgm")
    assert loaded.certificate == mechanism.certificate
    assert loaded.secrets == problem.space
    assert isinstance(loaded.secrets, Clock)
    assert loaded.sample(8) in problem.space.labels
    assert "per hour" in str(pg.evaluate(loaded, problem))
    assert pg.verify(tmp_path / "hour.pgm") == mechanism.certificate
    (tmp_path / "hour.toml").write_text('[space]\nkind = "test-clock"\nhours = [6, 18]\n[prior]\nuniform = true\n')
    read, _ = pg.read_problem(tmp_path / "hour.toml")
    assert isinstance(read, pg.Problem)
    assert read.space == Clock([6, 18])
    assert read.distance[0, 1] == 12


def test_a_space_that_is_not_registered_is_not_written(tmp_path: Path) -> None:
    class Unknown(pg.Space):
        """A class that no reader of the file would know."""

    mechanism = pg.design(pg.Problem(pg.Prior.uniform(Unknown(["a", "b"]))), epsilon=1.0)
    with pytest.raises(pg.InvalidProblem, match=r"Unknown: register the class with privacygames\.register_space"):
        mechanism.save(tmp_path / "unknown.pgm")


def test_wrong_registrations_of_spaces() -> None:
    options: dict[str, Any] = {"keys": ["hours"], "encode": lambda space: {}, "decode": decode_clock}
    with pytest.raises(pg.InvalidProblem, match="kind is 'grid'"):
        pg.register_space("grid", Clock, **options)
    with pytest.raises(pg.InvalidProblem, match="not registered yet"):
        pg.register_space("another-clock", Clock, **options)
    with pytest.raises(pg.InvalidProblem, match="keys"):
        pg.register_space("another-clock", type("Other", (Clock,), {}), **(options | {"keys": ["kind"]}))


def read_log(source: TraceSource) -> Iterator[RowBatch]:
    """A toy trace reader: lines such as ``anna@1704067200 46.5/6.6``."""
    lines = source.path.read_text().splitlines()
    users, fixes = zip(*(line.split("@") for line in lines), strict=True)
    times, places = zip(*(fix.split() for fix in fixes), strict=True)
    degrees = np.array([place.split("/") for place in places], dtype=float)
    seconds = np.array(times, dtype=np.int64)
    yield RowBatch(users, seconds, degrees[:, 0], degrees[:, 1], lines=range(1, len(lines) + 1))


def test_a_trace_reader_gives_visits(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("anna@1704067200 46.52/6.61\nanna@1704070800 46.53/6.64\n")
    (tmp_path / "b.log").write_text("ben@1704067200 46.51/6.62\n")
    visits = pg.traces.read(tmp_path, format=TraceFormat(read_log, endings=(".log",)))
    assert sorted(visits.users) == ["anna", "ben"]
    grid = pg.Grid.over((6.6, 46.5, 6.65, 46.55), columns=2, rows=2)
    assert visits.prior(grid, "anna").probabilities.sum() == pytest.approx(1.0)


class EveryOther(Policy):
    """A toy policy: half the ε for the second release, the fourth, …"""

    varies_epsilon = True

    def __init__(self) -> None:
        self.turn = 0

    def choose(self, public_state: PublicState) -> Choice | None:
        self.turn += 1
        epsilon = Decimal(2) if self.turn % 2 else Decimal(1)
        limit = public_state.accounts[0].limit if public_state.accounts else None
        if limit is not None and public_state.spent[0].amount + epsilon > limit:
            return None
        return Choice(public_state.mechanism_for(epsilon), epsilon)


def test_a_policy_chooses_releases() -> None:
    problem = pg.Problem(pg.Prior.uniform(ILLNESSES.space))
    mobility = pg.Mobility(problem.space, np.full((3, 3), 1 / 3))
    releases = pg.Releases(problem, mobility, policy=EveryOther(), budget=5.5)
    assert [releases.release("flu").epsilon for _ in range(3)] == [2.0, 1.0, 2.0]
    with pytest.raises(pg.BudgetExceeded):
        releases.release("flu")


def longest_row(mechanism: pg.Mechanism, problem: pg.Problem) -> float:
    """A toy metric: the largest probability of any output."""
    assert problem.shape == mechanism.probabilities.shape
    return float(mechanism.probabilities.max())


def test_a_metric_is_reported_beside_the_others() -> None:
    mechanism = pg.design(ILLNESSES, epsilon=1.0)
    report = pg.evaluate(mechanism, ILLNESSES, metrics={"most likely output": longest_row})
    assert report.metrics == {"most likely output": mechanism.probabilities.max()}
    assert report.to_dict()["most likely output"] == mechanism.probabilities.max()
    assert "most likely output" in str(report)
    compared = pg.compare(ILLNESSES, {"mine": mechanism}, metrics={"most likely output": longest_row})
    assert compared.rows[0].to_dict()["most likely output"] == mechanism.probabilities.max()
    with pytest.raises(pg.InvalidProblem, match="'cost', which a report uses already"):
        pg.evaluate(mechanism, ILLNESSES, metrics={"cost": longest_row})
    with pytest.raises(pg.InvalidProblem, match="functions by name"):
        pg.evaluate(mechanism, ILLNESSES, metrics={"odd": 3})  # type: ignore[dict-item]


@dataclass(frozen=True)
class Constant:
    """A toy solver: the cheapest constant output, whatever is wanted, without a proof."""

    fallbacks: tuple[pg.Solver, ...] = ()

    def solve(self, problem: pg.Problem, bounds: pg.Bounds, *, options: pg.SolveOptions) -> pg.Solution:
        assert options.tolerance > 0
        if bounds.epsilon is None:
            raise pg.InvalidProblem("this solver takes epsilon")
        row = np.eye(problem.shape[1])[(problem.cost @ problem.prior.probabilities).argmin()]
        duals = pg.DualSolution(
            ratios=pg.RatioDuals.none(),
            output_rows=np.arange(problem.shape[1]),
            adversaries=(pg.AdversaryDuals(0.0, np.full(problem.shape[::-1], 1 / problem.shape[0])),)[
                : len(bounds.distortion)
            ],
        )
        return pg.Solution(np.tile(row, (problem.shape[0], 1)), duals, pg.Status.OPTIMAL, "toy")


def test_a_solver_designs() -> None:
    mechanism = pg.design(ILLNESSES, epsilon=1.0, solver=Constant(), tolerance=1.0)
    assert mechanism.certificate.provenance.solver.startswith("toy")
    assert mechanism.certificate.cost == pytest.approx(0.5)
    assert pg.metrics.mutual_information(mechanism, ILLNESSES.prior) == 0
