"""Files: bit-for-bit round trips, and nothing but our own exceptions for anything else."""

import hashlib
import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import privacygames as pg
from privacygames.certificates.verifier import check
from privacygames.mechanism import binary_container
from privacygames.mechanism.mechanism_content import decode_content
from privacygames.mechanism_files import load_finite
from support import Case, cases


def same(first: pg.Mechanism, second: pg.Mechanism) -> None:
    assert (first.weights == second.weights).all()
    assert first.weights.dtype == second.weights.dtype
    assert first.certificate == second.certificate
    assert first.digest == second.digest
    assert first.secrets == second.secrets
    assert first.observables == second.observables
    assert first.problem == second.problem
    assert [type(label) for label in first.secrets.labels] == [type(label) for label in second.secrets.labels]


@given(case=cases())
@settings(max_examples=60)
def test_saving_and_loading_changes_nothing(case: Case, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("files")
    mechanism = pg.design(case.problem, **case.bounds)
    mechanism.save(folder / "a.pgm")
    loaded = load_finite(folder / "a.pgm")
    same(mechanism, loaded)
    assert pg.verify(folder / "a.pgm") == mechanism.certificate
    loaded.save(folder / "b.pgm")
    assert (folder / "a.pgm").read_bytes() == (folder / "b.pgm").read_bytes()


@pytest.mark.parametrize(
    "space",
    [
        pg.Grid(3, 2, 1.7, 2.2),
        pg.Grid.over((7.0, 46.0, 7.1, 46.1), columns=2, rows=2),
        pg.Numbers([1, 2.5, 3]),
        pg.Categories(["flu", "Erkältung", 'a "quoted" one', ""]),
        pg.Sets([{"Alien"}, {"Alien", "Brazil"}, set()]),
        pg.Graph([("a", "b"), ("b", "c", 2.0)]),
        pg.Space.from_distances("ab", [[0.0, 1.0], [2.0, 0.0]]),
        pg.Space("abc"),
    ],
    ids=lambda space: type(space).__name__,
)
def test_every_kind_of_space_comes_back(space: pg.Space, tmp_path: Path) -> None:
    mechanism = pg.design(pg.Problem(pg.Prior.uniform(space)), epsilon=1.0)
    mechanism.save(tmp_path / "m.pgm")
    loaded = load_finite(tmp_path / "m.pgm")
    same(mechanism, loaded)
    assert loaded.sample(space.labels[0]) in space.labels
    assert pg.evaluate(loaded, mechanism.problem) == pg.evaluate(mechanism, mechanism.problem)


@pytest.mark.parametrize(
    "observables",
    [
        pg.Grid(4, 3).blocks(2, 2, aggregation="max"),
        pg.Subsets(pg.Grid(4, 3), [["cell-0", "cell-1"], ["cell-2"]], labels=["left", "right"]),
        pg.Grid(2, 2, 4.0, 3.0),
    ],
    ids=["blocks", "subsets", "another grid"],
)
def test_observables_of_their_own_come_back(observables: pg.Space, tmp_path: Path) -> None:
    problem = pg.Problem(pg.Prior.uniform(pg.Grid(4, 3)), cost="euclidean", observables=observables)
    mechanism = pg.design(problem, epsilon=1.0)
    mechanism.save(tmp_path / "m.pgm")
    loaded = load_finite(tmp_path / "m.pgm")
    same(mechanism, loaded)
    assert loaded.observables == observables
    assert pg.Problem(loaded.problem.prior, cost="euclidean", observables=loaded.observables) == problem


def test_a_space_with_another_matrix_than_the_guarantee_keeps_its_own(tmp_path: Path) -> None:
    space = pg.Space.from_distances("ab", [[0.0, 1.0], [2.0, 0.0]])
    mechanism = pg.design(pg.Problem(pg.Prior.uniform(space), distance="hamming"), epsilon=1.0)
    mechanism.save(tmp_path / "m.pgm")
    same(mechanism, load_finite(tmp_path / "m.pgm"))


FORMAT_1 = Path(__file__).parent / "format-1"
"""Files written by release 0.1, and what it said about them."""


@pytest.mark.parametrize(
    ("name", "cost", "bound", "kinds"),
    [
        ("grid", 0.45195750651462624, 0.4519575065145926, (pg.Grid, pg.Grid)),
        ("blocks", 0.6669305877774342, 0.6669305877774045, (pg.Grid, pg.Space)),
        ("intervals", 1.2, 1.2000000000000768, (pg.Numbers, pg.Space)),
        ("graph", 0.4034121320549976, None, (pg.Space, pg.Space)),
        ("sets", 0.20000000000000664, 0.19999999999997853, (pg.Sets, pg.Sets)),
    ],
)
def test_files_of_format_1_load_and_verify(
    name: str, cost: float, bound: float | None, kinds: tuple[type, type], tmp_path: Path
) -> None:
    certificate = pg.verify(FORMAT_1 / f"{name}.pgm")
    assert certificate.cost == pytest.approx(cost, rel=1e-12)
    assert certificate.bound == (None if bound is None else pytest.approx(bound, rel=1e-12))
    loaded = load_finite(FORMAT_1 / f"{name}.pgm")
    assert (type(loaded.secrets), type(loaded.observables)) == kinds  # of graphs and subsets it kept labels only
    assert loaded.sample(loaded.secrets.labels[0]) in loaded.observables.labels
    loaded.save(tmp_path / "again.pgm")
    same(loaded, load_finite(tmp_path / "again.pgm"))


def test_without_dual_values_privacy_is_proved_and_optimality_is_not(tmp_path: Path) -> None:
    mechanism = pg.design(pg.Problem(pg.Prior.uniform(pg.Grid(4, 4))), epsilon=1.0)
    mechanism.save(tmp_path / "large.pgm")
    mechanism.save(tmp_path / "small.pgm", dual_solution=False)
    assert (tmp_path / "small.pgm").stat().st_size < (tmp_path / "large.pgm").stat().st_size
    certificate = pg.verify(tmp_path / "small.pgm")
    assert certificate.bound is None
    assert certificate.gap is None
    assert certificate.cost == mechanism.certificate.cost
    assert "bound on the cost" not in str(certificate)


@pytest.fixture
def content(tmp_path: Path) -> bytes:
    problem = pg.Problem(pg.Prior.from_counts(pg.Grid(3, 1), [1, 2, 3]))
    pg.design(problem, epsilon=1.0, distortion=0.2).save(tmp_path / "original.pgm")
    return (tmp_path / "original.pgm").read_bytes()


def reading(path: Path, content: bytes) -> pg.Certificate:
    path.write_bytes(content)
    return load_finite(path).certificate


def test_the_header_is_readable(content: bytes) -> None:
    lines = content.split(b"\n", 2)
    assert lines[0] == b"privacygames mechanism 2"
    header = json.loads(lines[2][: int(lines[1].split()[1])])
    assert header["promises"]["epsilon"] == 1.0
    assert header["secrets"]["kind"] == "grid"
    assert set(header["hashes"]) == {"prior", "cost", "distance", "distinguishability"}


def test_only_the_owner_can_read_a_file(tmp_path: Path) -> None:
    pg.baselines.uniform(pg.Problem(pg.Prior.uniform(pg.Categories("ab")))).save(tmp_path / "m.pgm")
    assert stat.S_IMODE((tmp_path / "m.pgm").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: b"", "not a privacygames mechanism file"),
        (lambda c: b"PK\x03\x04" + c, "not a privacygames mechanism file"),
        (
            lambda c: c.replace(b"mechanism 2", b"mechanism 9", 1),
            "format version '9' and this release reads versions 1",
        ),
        (lambda c: c[:-1], "truncated"),
        (lambda c: c[: len(c) // 2], "truncated"),
        (lambda c: c + b"\0", "has something added"),
        (lambda c: c[:-1] + bytes([c[-1] ^ 1]), "does not match its checksum"),
        (lambda c: c.replace(b'"epsilon": 1.0', b'"epsilon": 0.1', 1), "does not match its checksum"),
    ],
)
def test_damaged_files(tmp_path: Path, content: bytes, change: Any, message: str) -> None:
    with pytest.raises(pg.InvalidFile, match=message):
        reading(tmp_path / "m.pgm", change(content))


def test_oversized_and_absent_files(tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(pg.InvalidFile, match="cannot be read: No such file"):
        pg.verify(tmp_path / "none.pgm")
    with pytest.raises(pg.UnreadableFile, match="not a regular file") as caught:
        pg.load(tmp_path)
    assert caught.value.status is pg.Status.FILE_TROUBLE
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(pg.UnreadableFile, match="not a regular file"):
        pg.load(tmp_path / "pipe")
    with pytest.raises(pg.InvalidFile, match="not possible"):
        pg.load("a\0b")
    monkeypatch.setattr(binary_container, "MAX_FILE_BYTES", 100)
    with pytest.raises(pg.InvalidFile, match="at most 100 are allowed"):
        reading(tmp_path / "m.pgm", content)


def resealed(content: bytes) -> bytes:
    """The content with lengths and checksum made right again, as a forger would."""
    first, second, rest = content.split(b"\n", 2)
    body = int(second.split()[2])
    split = len(rest) - body
    return first + f"\n{hashlib.sha256(rest).hexdigest()} {split} {body}\n".encode() + rest


def test_a_forged_guarantee_is_not_believed(tmp_path: Path, content: bytes) -> None:
    forged = resealed(content.replace(b'"epsilon": 1.0', b'"epsilon": 0.1', 1))
    with pytest.raises(pg.GuaranteeViolated, match="ratio"):
        reading(tmp_path / "m.pgm", forged)
    forged = resealed(content.replace(b'"distortion": 0.2', b'"distortion": 0.9', 1))
    with pytest.raises(pg.GuaranteeViolated, match="distortion"):
        reading(tmp_path / "m.pgm", forged)


def test_a_swapped_prior_is_noticed(tmp_path: Path, content: bytes) -> None:
    prior = np.array([1, 2, 3]) / 6
    swapped = resealed(content.replace(prior.tobytes(), prior[::-1].tobytes(), 1))
    assert swapped != content
    with pytest.raises(pg.InvalidFile, match="differ from those that the guarantees refer to"):
        reading(tmp_path / "m.pgm", swapped)


def mutate(content: bytes, generator: np.random.Generator) -> bytes:
    """A few random bytes changed, removed, added or copied; half of the time sealed again."""
    mutated = bytearray(content)
    for _ in range(int(generator.integers(1, 4))):
        at = int(generator.integers(len(mutated)))
        match int(generator.integers(6)):
            case 0:
                mutated[at] ^= 1 << int(generator.integers(8))
            case 1:
                mutated[at] = int(generator.integers(256))
            case 2:
                del mutated[at : at + int(generator.integers(1, 20))]
            case 3:
                mutated[at:at] = generator.bytes(int(generator.integers(1, 20)))
            case 4:
                start = int(generator.integers(len(mutated)))
                mutated[at:at] = mutated[start : start + 30]
            case _:  # in the header, where the meaning is
                at = int(generator.integers(min(1500, len(mutated))))
                mutated[at] = int(generator.choice(list(b'0123456789-+.eE[]{}",:ntf ')))
    if generator.random() < 0.5:
        try:
            return resealed(bytes(mutated))
        except (ValueError, IndexError):
            pass
    return bytes(mutated)


def test_ten_thousand_mutated_files(content: bytes) -> None:
    """Never an exception that is not ours, never a pass for a broken guarantee."""
    from exact import holds_exactly

    generator = np.random.default_rng(10)
    outcomes = {"refused": 0, "passed": 0}
    for _ in range(10_000):
        try:
            contents = decode_content(*binary_container.parse(mutate(content, generator)))
            check(contents.statement)
        except (pg.InvalidFile, pg.GuaranteeViolated):
            outcomes["refused"] += 1
            continue
        outcomes["passed"] += 1
        assert holds_exactly(contents.statement)
    assert outcomes["refused"] > 5000
    assert outcomes["passed"] > 10  # harmless changes, such as to the name of the solver


def odd_values() -> list[Any]:
    return [None, True, -1, 0, 10**30, 1.5, -0.0, 1e308, "x", "", [], [1], {}, {"a": 1}, [[1]], "9" * 50]


def paths(value: Any, prefix: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    keys = [prefix] if prefix else []
    if isinstance(value, dict):
        keys += [path for key in value for path in paths(value[key], (*prefix, key))]
    if isinstance(value, list):
        keys += [path for at in range(min(len(value), 3)) for path in paths(value[at], (*prefix, at))]
    return keys


def odd_problems() -> dict[str, pg.Problem]:
    """Problems whose files describe every kind of space there is."""
    sets = pg.Sets([{"a"}, {"a", "b"}])
    graph = pg.Graph([("a", "b"), ("b", "c", 2.0)])
    given_distances = pg.Space.from_distances(["a", frozenset({"b"})], [[0.0, 1.0], [2.0, 0.0]])
    grid = pg.Grid.over((7.0, 46.0, 7.1, 46.1), columns=2, rows=1)
    return {
        "sets": pg.Problem(pg.Prior.uniform(sets), np.arange(6.0).reshape(3, 2), observables=pg.Numbers([1, 2, 3])),
        "graph": pg.Problem(pg.Prior.uniform(graph), observables=pg.Subsets(graph, [["a", "b"], ["c"]])),
        "distances": pg.Problem(pg.Prior.uniform(given_distances), distance="hamming"),
        "grid": pg.Problem(pg.Prior.uniform(grid), observables=pg.Subsets.all(grid)),
    }


@pytest.mark.parametrize(("kind", "version"), [("sets", 1), ("sets", 2), ("graph", 2), ("distances", 2), ("grid", 2)])
def test_every_header_value_may_be_anything(kind: str, version: int, tmp_path: Path) -> None:
    """Each value of the header replaced by each of many odd ones, or removed: our exceptions or a true guarantee."""
    from copy import deepcopy

    from exact import holds_exactly

    pg.design(odd_problems()[kind], epsilon=1.0, distortion=0.1, worst_case=True).save(tmp_path / "m.pgm")
    _, second, rest = (tmp_path / "m.pgm").read_bytes().split(b"\n", 2)
    size = int(second.split()[1])
    text, body = json.loads(rest[:size]), rest[size:]
    tried = 0
    for path in paths(text):
        for odd in [*odd_values(), "remove"]:
            changed = deepcopy(text)
            target = changed
            for key in path[:-1]:
                target = target[key]
            if odd == "remove":
                del target[path[-1]]
            else:
                target[path[-1]] = odd
            tried += 1
            try:
                contents = decode_content(*binary_container.parse(_sealed(changed, body, version)))
                check(contents.statement)
            except (pg.InvalidFile, pg.GuaranteeViolated):
                continue
            assert holds_exactly(contents.statement)
    assert tried > 700


def _sealed(header: Any, body: bytes, version: int) -> bytes:
    rest = json.dumps(header).encode() + body
    lengths = f"{len(rest) - len(body)} {len(body)}"
    return f"privacygames mechanism {version}\n{hashlib.sha256(rest).hexdigest()} {lengths}\n".encode() + rest


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    mechanism = pg.baselines.uniform(pg.Problem(pg.Prior.uniform(pg.Categories("ab"))))
    with pytest.raises(OSError, match=r"none/m\.pgm"):
        mechanism.save(tmp_path / "none" / "m.pgm")
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        mechanism.save(tmp_path / "taken")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["taken"]


def test_threads_that_save_to_one_path_leave_a_whole_file(tmp_path: Path) -> None:
    """8 threads × 100 saves once gave 114 raw errors, and readers saw incomplete files."""
    spaces = [pg.Numbers(range(size)) for size in (2, 20)]
    mechanisms = [pg.baselines.uniform(pg.Problem(pg.Prior.uniform(space))) for space in spaces]
    path = tmp_path / "m.pgm"
    mechanisms[0].save(path)
    with ThreadPoolExecutor(8) as pool:
        writers = [pool.submit(mechanisms[turn % 2].save, path) for turn in range(200)]
        readers = [pool.submit(pg.load, path) for _ in range(100)]
        for writer in writers:
            writer.result()
        assert {reader.result().digest for reader in readers} <= {mechanism.digest for mechanism in mechanisms}
    assert [each.name for each in tmp_path.iterdir()] == ["m.pgm"]


def test_a_file_too_large_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with (tmp_path / "huge.pgm").open("wb") as file:
        file.write(b"privacygames mechanism 2\n")
        file.truncate(2**31 + 1)  # sparse: it takes no room on the disk
    with pytest.raises(pg.InvalidFile, match="at most 2147483648 are allowed"):
        pg.load(tmp_path / "huge.pgm")
