"""Every measure of leakage on 200 random channels: ours, qif's and a closed form; refinement of 200 pairs, proved.

Needs the extra ``bench``. Writes ``results/leakage.md`` and ``results/leakage.json``; ends with an error where a
difference is more than rounding explains or a proof does not hold.
"""

import json
import platform
from collections import defaultdict
from collections.abc import Callable
from importlib.metadata import version
from itertools import combinations, permutations, product
from math import log2
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import qif
from numpy.typing import NDArray

import privacygames as pg
from privacygames import leakage
from privacygames.leakage import Channel, Gain

RESULTS = Path(__file__).parent / "results"
CHANNELS = 200
DENOMINATOR = 97
TOLERANCE = 1e-9
"""Largest difference of a measure that has a closed form; capacities by iteration have their own."""
ITERATED = 1e-6
GRID = 12
Floats = NDArray[np.float64]
Measures = dict[str, tuple[float, float | None, float]]
"""By name: ours, qif's (None where qif has none), and the closed form or brute force."""


def random_channel(
    generator: np.random.Generator, secrets: int, outputs: int, space: pg.Space | None = None
) -> Channel:
    """Rows of 97ths, some of them zero."""
    rows = generator.multinomial(DENOMINATOR, generator.dirichlet(np.ones(outputs)), size=secrets)
    names = space or pg.Categories([f"s{i}" for i in range(secrets)])
    return Channel.from_integers(names, pg.Categories([f"o{i}" for i in range(outputs)]), rows, DENOMINATOR)


def measure(channel: Channel, prior: pg.Prior, gains: Floats) -> Measures:
    """Every measure of one channel, three times."""
    table, belief, named = channel.probabilities, prior.probabilities, qif.measure
    joint = belief[:, None] * table
    secrets = len(belief)
    sets = np.array([[float(s in chosen) for s in range(secrets)] for chosen in combinations(range(secrets), 2)])
    two = Gain.tries(2)
    best, best_joint = (gains @ belief).max(), (gains @ joint).max(axis=0).sum()
    rows = -np.where(table > 0, table * np.log2(np.where(table > 0, table, 1)), 0).sum(axis=1)
    outputs = joint.sum(axis=0)
    output_entropy = -sum(p * log2(p) for p in outputs if p > 0)

    def guesses(weights: Floats) -> float:
        return min(
            sum(place * float(weights[s]) for place, s in enumerate(order, start=1))
            for order in permutations(range(secrets))
        )

    posteriors = [column / column.sum() for column in joint.T if column.sum() > 0]
    moved = sum(
        column.sum() * np.abs(posterior - belief).sum() / 2
        for column, posterior in zip((column for column in joint.T if column.sum() > 0), posteriors, strict=True)
    )
    shannon = leakage.shannon_capacity(channel, tolerance=1e-9)
    shannon_theirs = float(named.shannon.add_capacity(table, 1e-9)[0])
    return {
        "prior g-vulnerability": (
            leakage.prior_vulnerability(prior, gains),
            float(named.g_vuln.prior(gains, belief)),
            float(best),
        ),
        "posterior g-vulnerability": (
            leakage.posterior_vulnerability(channel, prior, gains),
            float(named.g_vuln.posterior(gains, belief, table)),
            float(best_joint),
        ),
        "multiplicative g-leakage": (
            leakage.multiplicative_leakage(channel, prior, gains),
            float(named.g_vuln.mult_leakage(gains, belief, table)),
            float(best_joint / best),
        ),
        "additive g-leakage": (
            leakage.additive_leakage(channel, prior, gains),
            float(named.g_vuln.add_leakage(gains, belief, table)),
            float(best_joint - best),
        ),
        "posterior Bayes vulnerability": (
            leakage.posterior_vulnerability(channel, prior),
            float(named.bayes_vuln.posterior(belief, table)),
            float(joint.max(axis=0).sum()),
        ),
        "vulnerability of two tries": (
            leakage.posterior_vulnerability(channel, prior, two),
            float(named.g_vuln.posterior(sets, belief, table)),
            float((sets @ joint).max(axis=0).sum()),
        ),
        "min-entropy leakage": (
            leakage.min_entropy_leakage(channel, prior),
            float(named.bayes_vuln.min_entropy_leakage(belief, table)),
            log2(joint.max(axis=0).sum() / belief.max()),
        ),
        "Shannon leakage": (
            leakage.shannon_leakage(channel, prior),
            float(named.shannon.add_leakage(belief, table)),
            float(output_entropy - belief @ rows),
        ),
        "guessing entropy": (
            leakage.guessing_entropy(prior),
            float(named.guessing.prior(belief)),
            guesses(belief),
        ),
        "posterior guessing entropy": (
            leakage.posterior_guessing_entropy(channel, prior),
            float(named.guessing.posterior(belief, table)),
            float(sum(guesses(column) for column in joint.T)),
        ),
        "Bayes capacity": (
            leakage.bayes_capacity(channel),
            float(named.bayes_vuln.mult_capacity(table)),
            float(table.max(axis=0).sum()),
        ),
        "additive capacity over gains": (
            leakage.additive_gain_capacity(channel, prior),
            float(named.g_vuln.add_capacity(belief, table, True)),
            float(moved),
        ),
        "additive capacity over vulnerabilities": (
            leakage.additive_vulnerability_capacity(channel, prior),
            float(named.g_vuln.add_capacity(belief, table, False)),
            float(1 - table[belief > 0].min(axis=0).sum()),
        ),
        "additive Bayes capacity": (
            leakage.additive_capacity(channel).lower,
            None,
            max(
                (table[list(chosen)].max(axis=0).sum() - 1) / size
                for size in range(1, secrets + 1)
                for chosen in combinations(range(secrets), size)
            ),
        ),
        "Shannon capacity": (shannon.lower, shannon_theirs, shannon.upper),
    }


def bracket(channel: Channel, gains: Floats) -> dict[str, tuple[float, float, float]]:
    """Lower bound, best prior of a grid, upper bound."""
    secrets = len(gains[0])
    grid = np.array([p for p in product(range(GRID + 1), repeat=secrets) if sum(p) == GRID]) / GRID
    before = (grid @ gains.T).max(axis=1)
    joint = grid[:, :, None] * channel.probabilities[None]
    after = np.einsum("ws,pso->pwo", gains, joint).max(axis=1).sum(axis=1)
    additive, factor = leakage.additive_capacity(channel, gains), leakage.multiplicative_capacity(channel, gains)
    shannon = leakage.shannon_capacity(channel)
    searched = max(leakage.shannon_leakage(channel, prior.tolist()) for prior in grid[::7])
    return {
        "additive g-capacity": (additive.lower, float((after - before).max()), additive.upper),
        "multiplicative g-capacity": (factor.lower, float((after / before).max()), factor.upper),
        "Shannon capacity": (shannon.lower, searched, shannon.upper),
    }


def refine(generator: np.random.Generator, number: int) -> tuple[bool, bool, bool]:
    """Our verdict with its proof checked, qif's, and whether the proof is free of rounding."""
    secrets, outputs, others = (int(size) for size in generator.integers(2, 8, 3))
    first = random_channel(generator, secrets, outputs)
    if number % 2:
        second = leakage.cascade(first, random_channel(generator, outputs, others, first.outputs))
    else:
        second = random_channel(generator, secrets, others, first.secrets)
    answer = leakage.refinement(first, second)
    answer.verify()
    theirs = bool(qif.refinement.refined_by(first.probabilities, second.probabilities))
    return answer.holds, theirs, not answer.excess


def timed(action: Callable[[], Any]) -> tuple[Any, float]:
    """The result and the seconds it took."""
    started = perf_counter()
    return action(), perf_counter() - started


def main() -> None:
    """Run all of it and write the table."""
    generator = np.random.default_rng(35)
    differences: dict[str, list[tuple[float | None, float]]] = defaultdict(list)
    brackets: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for number in range(CHANNELS):
        secrets, outputs = (int(size) for size in generator.integers(2, 6, 2))
        channel = random_channel(generator, secrets, outputs)
        prior = pg.Prior(channel.secrets, generator.dirichlet(np.ones(secrets)))
        gains = generator.integers(0, 10, (int(generator.integers(1, 6)), secrets)).astype(float) + 0.25
        for name, (ours, theirs, closed) in measure(channel, prior, gains).items():
            differences[name].append((None if theirs is None else abs(ours - theirs), abs(ours - closed)))
        if number % 4 == 0 and secrets <= 4:
            for name, bounds in bracket(channel, gains).items():
                brackets[name].append(bounds)
    lines = [
        f"# Leakage: ours, qif {version('qif')} and closed forms",
        "",
        f"{CHANNELS} random channels of 2 to 5 secrets and outputs; largest difference. For the Shannon capacity",
        "the last column is the width of the certified bounds.",
        "",
        "| measure | from qif | from the closed form or brute force |",
        "|---|---:|---:|",
    ]
    largest: dict[str, tuple[float | None, float]] = {}
    for name, pairs in differences.items():
        from_qif = [pair[0] for pair in pairs if pair[0] is not None]
        largest[name] = (max(from_qif) if from_qif else None, max(pair[1] for pair in pairs))
        shown = f"{max(from_qif):.1e}" if from_qif else "(not in qif)"
        lines.append(f"| {name} | {shown} | {largest[name][1]:.1e} |")
        assert max([*from_qif, largest[name][1]]) <= (ITERATED if name == "Shannon capacity" else TOLERANCE), name
    lines += [
        "",
        f"Lower bounds are attained; a grid of priors with the denominator {GRID} is searched.",
        "",
        "| capacity over priors | channels | bounds meet (10⁻⁶) | widest gap | grid below upper | and below lower |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, triples in brackets.items():
        within = sum(grid <= upper for _, grid, upper in triples)
        assert within == len(triples), name
        meet = sum(upper - lower <= 1e-6 for lower, _, upper in triples)
        gap = max(upper - lower for lower, _, upper in triples)
        below = sum(grid <= lower + 1e-7 for lower, grid, _ in triples)
        lines.append(f"| {name} | {len(triples)} | {meet} | {gap:.2g} | {within} | {below} |")
    verdicts, seconds = timed(lambda: [refine(generator, number) for number in range(CHANNELS)])
    agree = sum(ours == theirs for ours, theirs, _ in verdicts)
    holds = [exact for ours, _, exact in verdicts if ours]
    lines += [
        "",
        f"Refinement of {CHANNELS} random pairs of 2 to 7 secrets and outputs: {agree} verdicts agree with qif's,",
        f"all {CHANNELS} proofs were verified in fractions ({len(holds)} post-processings, {sum(holds)} of them",
        f"without any rounding, and {CHANNELS - len(holds)} gain functions), {seconds:.1f} s in all.",
        f"Python {platform.python_version()}, NumPy {np.__version__}.",
    ]
    assert agree == CHANNELS
    text = "\n".join(lines) + "\n"
    RESULTS.joinpath("leakage.md").write_text(text, encoding="utf-8")
    figures = {"largest": largest, "brackets": brackets}
    RESULTS.joinpath("leakage.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
