"""Random cases: spaces, beliefs, costs, distances and bounds of every kind and scale, each from a seed of its own."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

import privacygames as pg
from fuzz.case import SOLVERS, Array, Case, ReducedAdversary
from fuzz.reference import Reference

T = TypeVar("T")
SMALLEST, LARGEST = 1e-60, 1e60
"""What numbers other than 0 may be, as the library documents it."""


class Generator:
    """Chooses; every choice is noted as a trait of the case."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = np.random.default_rng(seed)
        self.traits: list[str] = []

    def choose(self, what: str, **weights: float) -> str:
        """One of several names, by weight, noted as a trait."""
        names = list(weights)
        shares = np.array(list(weights.values()))
        name = names[self.random.choice(len(names), p=shares / shares.sum())].replace("_", " ")
        self.traits.append(f"{what}: {name}")
        return name

    def one_of(self, values: Sequence[T]) -> T:
        """One of several values, each as likely."""
        return values[int(self.random.integers(len(values)))]

    def chance(self, share: float) -> bool:
        """Whether something happens."""
        return bool(self.random.random() < share)

    def magnitude(self, least: float, most: float) -> float:
        """A power of ten, rounded to two digits so that it can be read."""
        return float(f"{10 ** self.random.uniform(least, most):.1e}")


def generate(seed: int) -> Case:
    """The case of a seed."""
    make = Generator(seed)
    space = _space(make)
    n = len(space)
    base = space.distance(space.default_distance)
    prior = _prior(make, n)
    distinguishability = _distinguishability(make, base)
    distance = _distance(make, np.where(np.isfinite(base), base, 1.0))
    observables, plain = _observables(make, space, distance)
    cost = _cost(make, plain, space is observables or observables is None)
    case = Case(
        seed,
        (),
        prior,
        _in_range(cost),
        _in_range(distance),
        _in_range(distinguishability),
        space=space,
        observables=observables if observables is not None else space,
        solver=make.one_of(["auto"] * 12 + list(SOLVERS)),
        tolerance=make.one_of([1e-6] * 8 + [1e-4, 1e-2, 1e-7]),
    )
    if case.observables is None or len(case.observables) != len(cost):
        case = replace(case, observables=pg.Categories([f"o{i}" for i in range(len(cost))]))
    case = _bounds(make, case)
    return replace(case, traits=tuple(make.traits))


def _in_range(values: Array) -> Array:
    """Numbers too small or too large for the library become 0, or the largest there is."""
    kept = np.where(values < SMALLEST, 0.0, values)
    return np.where(np.isfinite(kept), np.minimum(kept, LARGEST), kept) + 0.0


def _size(make: Generator) -> int:
    bracket = make.choose("size", few=62, some=26, many=10, most=2)
    low, high = {"few": (1, 5), "some": (6, 8), "many": (9, 13), "most": (14, 24)}[bracket]
    return int(make.random.integers(low, high + 1))


def _space(make: Generator) -> pg.Space:
    n = _size(make)
    kind = make.choose("space", points=4, grid=2, numbers=2, categories=1, sets=1, graph=2, product=1, table=3)
    random = make.random
    if kind == "grid":
        rows = int(random.integers(1, max(2, int(np.sqrt(n)) + 1)))
        return pg.Grid(max(1, n // rows), rows, make.magnitude(-1, 2), make.magnitude(-1, 2))
    if kind == "numbers":
        return pg.Numbers(sorted(set(np.round(random.uniform(0, 3 * n, n), 1).tolist())))
    if kind == "categories":
        return pg.Categories([f"c{i}" for i in range(n)])
    if kind == "sets":
        sets = {frozenset(f"f{j}" for j in range(4) if random.random() < 0.5) for _ in range(n)}
        return pg.Sets(sorted(sets, key=sorted))
    if kind == "graph":
        edges = [
            (f"n{i}", f"n{int(random.integers(0, i))}", float(np.round(random.uniform(0.1, 2), 2))) for i in range(1, n)
        ]
        edges += [(f"n{a}", f"n{b}", 1.0) for a, b in random.integers(0, n, (n // 3, 2)) if a != b]
        return pg.Graph(edges, nodes=[f"n{i}" for i in range(n)], directed=make.chance(0.2))
    if kind == "product":
        first = int(random.integers(1, max(2, n // 2) + 1))
        return pg.Product([pg.Numbers(range(first)), pg.Categories([f"c{i}" for i in range(max(1, n // first))])])
    if kind == "points":
        points = random.random((n, 2)) * np.sqrt(n)
        apart = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))
    else:
        apart = random.uniform(0.1, 3, (n, n))
    np.fill_diagonal(apart, 0.0)
    return pg.Space.from_distances([f"p{i}" for i in range(n)], apart)


def _prior(make: Generator, n: int) -> Array:
    random = make.random
    kind = make.choose("prior", uniform=2, random=4, peaked=1, zeros=2, tiny=2, single=0.5)
    belief = np.ones(n) if kind == "uniform" else random.dirichlet(np.ones(n))
    place = int(random.integers(n))
    if kind == "peaked":
        belief[place] += 100
    if kind == "zeros":
        belief[random.random(n) < 0.4] = 0.0
    if kind == "tiny":
        belief[random.random(n) < 0.5] *= make.magnitude(-15, -8)
    if kind == "single" or not belief.sum() > 0:
        belief = np.zeros(n)
        belief[place] = 1.0
    return np.asarray(belief / belief.sum())


def _distinguishability(make: Generator, base: Array) -> Array:
    random, n = make.random, len(base)
    kind = make.choose(
        "distinguishability",
        plain=10,
        disconnected=1.5,
        one_way_zero=1.5,
        both_ways_zero=1.5,
        tiny=1.5,
        one_way_tiny=1.5,
        huge=1.5,
        wide=1,
        squared=0.5,
        uneven=1,
        scaled=1,
    )
    apart = np.array(base)
    if n == 1 or kind == "plain":
        return apart
    off = ~np.eye(n, dtype=bool)
    some = off & (random.random((n, n)) < 0.3)
    s, t = random.choice(n, 2, replace=False)
    if kind == "disconnected":
        apart[some] = np.inf
        if make.chance(0.5):
            apart = np.maximum(apart, apart.T)
    elif kind == "one way zero":
        apart[s, t] = 0.0
    elif kind == "both ways zero":
        apart[s, t] = apart[t, s] = 0.0
    elif kind == "tiny":
        apart[s, t] = apart[t, s] = make.magnitude(-14, -3)
    elif kind == "one way tiny":
        apart[s, t] = make.magnitude(-14, -3)
    elif kind == "huge":
        apart *= make.magnitude(6, 14)
    elif kind == "wide":
        apart[off] = 10 ** random.uniform(-6, 6, off.sum())
    elif kind == "squared":
        apart = apart**2
    elif kind == "uneven":
        apart[off] *= random.uniform(0.3, 3, off.sum())
    elif kind == "scaled":
        apart *= make.magnitude(-9, 6)
    return apart


def _distance(make: Generator, base: Array) -> Array:
    """Errors of guesses of the secret."""
    random, n = make.random, len(base)
    kind = make.choose("distance", plain=10, hamming=2, random=2, hopeless=2, scaled=2, huge=0.7, tiny=0.5, zero=0.3)
    off = ~np.eye(n, dtype=bool)
    errors = np.array(base)
    if kind == "hamming":
        errors = off.astype(float)
    elif kind == "random":
        errors = np.where(off, random.random((n, n)) * 2, 0.0)
    elif kind == "hopeless":
        errors[int(random.integers(n))] = make.magnitude(6, 15)
        errors[~off] = 0.0
    elif kind == "scaled":
        errors *= make.magnitude(-9, 9)
    elif kind == "huge":
        errors *= make.magnitude(12, 15)
    elif kind == "tiny":
        errors *= make.magnitude(-20, -9)
    elif kind == "zero":
        errors[:] = 0.0
    return errors


def _observables(make: Generator, space: pg.Space, distance: Array) -> tuple[pg.Space | None, Array]:
    """The outputs as a space, and a cost matrix that suits them."""
    random, n = make.random, len(space)
    kind = make.choose("outputs", secrets=14, subsets=3, others=3, single=1)
    if kind == "secrets":
        return space, distance
    if kind == "subsets":
        groups = [sorted({int(i) for i in random.integers(0, n, int(random.integers(1, n + 1)))}) for _ in range(n)]
        groups = [list(each) for each in dict.fromkeys(map(tuple, groups))]
        members = [[space.labels[i] for i in group] for group in groups]
        outputs = pg.Subsets(space, members, labels=[f"g{i}" for i in range(len(groups))])
        return outputs, np.array([distance[group].mean(axis=0) for group in groups])
    m = 1 if kind == "single" else int(random.integers(1, n + 4))
    return None, np.array([distance[int(random.integers(n))] for _ in range(m)]) + random.random((m, 1))


def _cost(make: Generator, plain: Array, own: bool) -> Array:
    """c(o, s)."""
    random, shape = make.random, plain.shape
    kind = make.choose(
        "cost", plain=4, hamming=5, random=5, equal=0.7, zero=0.3, sentinel=3, wide=1, free_output=0.7, forbidden=1.5
    )
    cost = np.array(plain)
    if kind == "hamming":
        cost = 1.0 - np.eye(*shape) if own else (random.random(shape) < 0.7).astype(float)
    elif kind in ("random", "sentinel", "free output", "forbidden"):
        cost = random.random(shape)
        if own and make.chance(0.5):
            cost = cost * (1 - np.eye(*shape))
    elif kind == "equal":
        cost = np.full(shape, make.magnitude(-3, 3))
    elif kind == "zero":
        cost = np.zeros(shape)
    elif kind == "wide":
        cost = 10 ** random.uniform(-6, 6, shape)
    if kind == "sentinel":
        cost[random.random(shape) < make.one_of([0.02, 0.1, 0.4])] = make.magnitude(6, 12)
    if kind == "free output":
        cost[int(random.integers(shape[0]))] = 0.0
    if kind == "forbidden" and FORBIDDEN_COSTS:
        cost[random.random(shape) < make.one_of([0.05, 0.2])] = np.inf
    if make.choose("cost scale", one=8, other=2) == "other":
        cost = cost * make.magnitude(-9, 9)
    return cost


def _accepts_forbidden() -> bool:
    """Whether the library takes ∞ as a cost: this output is never given for this secret."""
    try:
        space = pg.Categories(["a", "b"])
        pg.Problem(pg.Prior.uniform(space), cost=np.array([[0.0, np.inf], [1.0, 0.0]]))
    except pg.InvalidProblem:
        return False
    return True


FORBIDDEN_COSTS = _accepts_forbidden()


def _bounds(make: Generator, case: Case) -> Case:
    """What is asked."""
    task = make.choose("task", design=80, find_epsilon=6, find_distortion=4, find_cost=5, compare=5)
    case = replace(case, task=task)
    if task == "compare":
        share = make.one_of([None, 0.3, 0.9])
        if share is None or not float((case.distance @ case.prior).min()) * share:
            return case.with_bounds(epsilon=_epsilon(make, case))
        return case.with_bounds(distortion=float((case.distance @ case.prior).min()) * share)
    privacy = {
        "find epsilon": {"none": 3, "distortion": 2, "adversaries": 1},
        "find distortion": {"limit": 3, "adversaries limit": 1},
    }.get(task, {"none": 3, "distortion": 4, "adversaries": 1.5, "limit": 3, "adversaries limit": 1})
    if task == "find cost":
        privacy = {"none": 3, "distortion": 3, "adversaries": 1}
    asked = make.choose("privacy", **{name.replace(" ", "_"): weight for name, weight in privacy.items()})
    if task != "find epsilon" and (asked == "none" or make.chance(0.5)):
        case = case.with_bounds(epsilon=_epsilon(make, case))
        if make.chance(0.2):
            case = case.with_bounds(within=_within(make, case))
    elif task == "find epsilon" and make.chance(0.2):
        case = case.with_bounds(within=_within(make, case))
    if asked == "distortion":
        case = case.with_bounds(distortion=_share(make, float((case.distance @ case.prior).min())))
    if asked.startswith("adversaries"):
        case = replace(
            case, adversaries=_adversaries(make, case, reverse=asked.endswith("limit"), open_end=task != "design")
        )
    worst = make.choose("worst case", no=13, yes=4, limit=3)
    if worst == "yes":
        case = case.with_bounds(worst_case=True)
    if task == "find epsilon":
        return _cost_limit(make, case)
    if worst == "limit":
        least = Reference(case).least_worst_cost
        if least is not None:
            case = case.with_bounds(
                worst_cost_at_most=_near(make, float(least.value), float(Reference(case).blind_costs[1]))
            )
    if asked.endswith("limit"):
        case = _cost_limit(make, case)
    return case


def _cost_limit(make: Generator, case: Case) -> Case:
    """A limit on the cost, near the least possible one or between it and what revealing nothing costs."""
    reference = Reference(case.with_bounds(cost_at_most=1.0))
    least = reference.least_cost
    blind = float(reference.blind_costs[1 if case.bounds.get("worst_case") else 0])
    return case.with_bounds(cost_at_most=_near(make, blind if least is None else float(least.value), blind))


def _near(make: Generator, least: float, blind: float) -> float:
    """A limit near the least or the largest that makes a difference, or between."""
    least, blind = max(least, 0.0), max(blind, 0.0)
    between = least + make.random.random() * (blind - least)
    part = make.one_of([0.0, 0.5, 0.999, 1 - 1e-9, 1.0, 1 + 1e-9, 1.0001, 1.01])
    value = make.one_of([between, between, between, least * part, least * part, blind, 2 * blind])
    return value if SMALLEST <= value <= LARGEST else 0.0


def _share(make: Generator, most: float) -> float:
    """A share of the largest distortion."""
    value = most * make.one_of([0.0, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999, 1 - 1e-6, 1 - 1e-9, 1.0, 1.001, 2.0])
    return value if SMALLEST <= value <= LARGEST else 0.0


def _epsilon(make: Generator, case: Case) -> float:
    if make.choose("epsilon", by_distance=7, any=3) == "any":
        return make.magnitude(-4, 1.7)
    apart = case.distinguishability
    usual = apart[np.isfinite(apart) & (apart > 0)]
    unit = float(np.median(usual)) if usual.size else 1.0
    return float(np.clip(make.magnitude(-1.5, 1.3) / unit, 1e-50, 1e50))


def _within(make: Generator, case: Case) -> float:
    apart = case.distinguishability
    usual = np.append(apart[np.isfinite(apart)], 0.0)
    return float(np.quantile(usual, make.one_of([0.0, 0.3, 0.6, 1.0])))


def _adversaries(make: Generator, case: Case, *, reverse: bool, open_end: bool) -> tuple[ReducedAdversary, ...]:
    """One to three adversaries, the first of them the paper's at times."""
    random, (n, _) = make.random, case.shape
    found = []
    for place in range(int(random.integers(1, 4))):
        prior = None if make.chance(0.4) else _prior(make, n)
        errors: Any = None
        if make.chance(0.5):
            errors = random.random((int(random.integers(1, 4)), n)) * make.one_of([1.0, 1.0, 1e6, 1e-6])
        most = float(((case.distance if errors is None else errors) @ (case.prior if prior is None else prior)).min())
        left_open = reverse and place == 0 and (open_end or not make.chance(0.25))
        found.append(ReducedAdversary(prior, errors, None if left_open else _share(make, most)))
    return tuple(found)
