"""Python and TypeScript read the same files, draw the same outputs and refuse the same mutants."""

import base64
import json
import random
import struct
from collections import Counter
from collections.abc import Iterator
from decimal import Context, Decimal
from hashlib import sha256
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privacygames as pg
from device.cases import mechanisms, plain_output, plain_secret, secrets_of
from device.node import PACKAGE, run_node
from device.write_vectors import VECTORS
from privacygames.device import DeviceMechanism

ODD_NUMBERS = (0.0, -0.0, float("nan"), float("inf"), -float("inf"), 5e-324, 1e-12, 1e12, 1e300, 1.0, -1.0, 180.0, 90.5)


def in_python(content: bytes) -> str:
    """What Python makes of a file, in the words of ``device/test/judge.ts``."""
    try:
        pg.device.decode(content)
    except pg.InvalidFile:
        return "invalid"
    except pg.GuaranteeViolated:
        return "violated"
    return "accepted"


def on_device(files: list[bytes], folder: Path) -> list[str]:
    """What the bundle makes of files."""
    packed = folder / "files"
    packed.write_bytes(b"".join(len(each).to_bytes(4, "little") + each for each in files))
    verdicts: list[str] = json.loads(run_node("build/test/judge.js", packed))
    return verdicts


def sealed(content: bytes | bytearray) -> bytes:
    return bytes(content) + sha256(content).digest()


def test_the_vectors_are_what_python_draws() -> None:
    cases = json.loads(VECTORS.read_text(encoding="utf-8"))
    given = mechanisms()
    assert [case["name"] for case in cases] == list(given)
    for case in cases:
        mechanism = pg.device.decode(base64.b64decode(case["file"]))
        assert mechanism.digest == case["digest"]
        secrets = {json.dumps(plain_secret(case["name"], each)): each for each in secrets_of(case["name"], mechanism)}
        for draw in case["draws"]:
            random_bytes = bytes.fromhex(draw["random"])
            output = mechanism.draw(secrets[json.dumps(draw["secret"])], lambda count: random_bytes[:count])  # noqa: B023
            assert plain_output(output) == draw["output"]


def test_the_vectors_are_encoded_from_the_same_mechanisms() -> None:
    for case in json.loads(VECTORS.read_text(encoding="utf-8")):
        assert pg.device.encode(mechanisms()[case["name"]]) == base64.b64decode(case["file"])


def test_the_package_passes_its_own_tests() -> None:
    tests = sorted((PACKAGE / "build" / "test").glob("*.test.js"))
    run_node("--test", *(test.relative_to(PACKAGE) for test in tests))


@pytest.mark.parametrize(
    "count", [pytest.param(600), pytest.param(10_000, marks=pytest.mark.slow)], ids=["some", "ten thousand"]
)
def test_both_refuse_the_same_mutants(count: int, tmp_path: Path) -> None:
    source = random.Random(count)
    originals = [pg.device.encode(each)[:-32] for each in mechanisms().values()]
    mutants = [mutant(source.choice(originals), source) for _ in range(count)]
    expected = [in_python(each) for each in mutants]
    given = on_device(mutants, tmp_path)
    differing = [(at, one, other) for at, (one, other) in enumerate(zip(expected, given, strict=True)) if one != other]
    assert differing == []
    assert len(set(expected)) == 3
    assert min(Counter(expected).values()) >= count // 100


def mutant(original: bytes, source: random.Random) -> bytes:
    """A file with something changed; most have a digest that fits."""
    content = bytearray(original)
    for _ in range(source.choice((1, 1, 1, 2, 4))):
        MUTATIONS[source.randrange(len(MUTATIONS))](content, source)
    return bytes(content) + bytes(32) if source.random() < 0.05 else sealed(content)


def change_byte(content: bytearray, source: random.Random) -> None:
    content[source.randrange(len(content))] ^= 1 << source.randrange(8)


def change_heading(content: bytearray, source: random.Random) -> None:
    """A byte of the structure, which comes first: the weights are most of a file."""
    content[source.randrange(min(len(content), 700))] = source.randrange(256)


def change_number(content: bytearray, source: random.Random) -> None:
    at = source.randrange(len(content) - 8)
    content[at : at + 8] = struct.pack("<d", source.choice(ODD_NUMBERS))


def change_count(content: bytearray, source: random.Random) -> None:
    at = source.randrange(min(len(content) - 4, 700))
    content[at : at + 4] = source.choice((0, 1, 2, 2047, 2049, 2**31, 2**32 - 1)).to_bytes(4, "little")


def move_weight(content: bytearray, source: random.Random) -> None:
    """From one weight to the one before it, so that the sum remains where both are of one row."""
    at = len(content) - 8 * source.randrange(1, 12)
    first, second = struct.unpack("<2q", content[at - 8 : at + 8])
    amount = source.choice((1, -1, 2**20, 2**55, second, -first))
    if max(abs(first + amount), abs(second - amount)) < 2**63:
        content[at - 8 : at + 8] = struct.pack("<2q", first + amount, second - amount)


def cut(content: bytearray, source: random.Random) -> None:
    at = source.randrange(len(content))
    del content[at : at + source.choice((1, 4, 8, len(content)))]
    content.extend(bytes(max(0, 200 - len(content))))  # the other changes need something to change


def repeat(content: bytearray, source: random.Random) -> None:
    at = source.randrange(len(content))
    content[at:at] = content[at : at + source.choice((1, 4, 8, 100))]


MUTATIONS = (change_byte, change_heading, change_number, change_count, move_weight, move_weight, cut, repeat)


def test_both_decide_ratios_to_the_last_unit(tmp_path: Path) -> None:
    """Two secrets whose weights have the largest allowed ratio, and one unit more."""
    source = random.Random(7)
    digits = Context(prec=60)
    files, expected = [], []
    for _ in range(60):
        epsilon = source.uniform(0.01, 3.0)
        other = source.randrange(2**52, int(2**61 / exp(epsilon)))
        exact = digits.multiply(digits.exp(Decimal(epsilon)), Decimal(other))
        for excess, verdict in ((0, "accepted"), (1, "violated")):
            largest = int(exact) + excess
            weights = np.array([[largest, 2**62 - largest], [other, 2**62 - other]])
            files.append(two_numbers(weights, epsilon))
            expected.append(verdict)
    assert [in_python(each) for each in files] == expected
    assert on_device(files, tmp_path) == expected


def two_numbers(weights: Any, epsilon: float) -> bytes:
    """The file of a mechanism for the numbers 0 and 1, written by hand."""
    content = b"privacygames device 1\nprivate: computed from the prior\n"
    content += struct.pack("<BBdH", 2, 62, epsilon, 0)  # numbers, bits, epsilon, no unit
    content += struct.pack("<I2d", 2, 0.0, 1.0) + bytes([0])  # the secrets, which are the outputs as well
    content += bytes([0, 1]) + struct.pack("<I2d", 2, 0.0, 1.0) + bytes([0, 1, 1, 0])  # distances
    return sealed(content + weights.astype("<u8").tobytes())


def files_of_designs() -> Iterator[tuple[str, bytes]]:
    line = pg.Interval(0.0, 24.0, unit="hours")
    problem = pg.PointProblem(pg.PointPrior(line, [1.0, 9.5, 17.0], [3, 2, 1]), [2.0, 10.0, 18.0])
    yield "interval", pg.device.encode(pg.design(problem, epsilon=0.3))
    grid = pg.Grid.over((6.5, 46.44, 6.74, 46.6), columns=5, rows=4)
    counts = [1 + (7 * cell) % 5 for cell in range(20)]
    cells = pg.Problem(pg.Prior.from_counts(grid, counts), cost="euclidean")
    yield "grid", pg.device.encode(pg.design(cells, epsilon=0.4))
    yield "threshold", pg.device.encode(pg.design(cells, epsilon=0.8, within=6.0))
    many = pg.Problem(pg.Prior.uniform(pg.Grid(20, 15, 15.0, 8.0)), cost="euclidean")
    yield "300 cells", pg.device.encode(pg.baselines.planar_laplace(many, 1.0))


def test_designs_verify_on_a_device(tmp_path: Path) -> None:
    names, files = zip(*files_of_designs(), strict=True)
    verdicts = on_device(list(files), tmp_path)
    assert dict(zip(names, verdicts, strict=True)) == dict.fromkeys(names, "accepted")
    assert all(isinstance(pg.device.decode(each), DeviceMechanism) for each in files)
