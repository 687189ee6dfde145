"""Mechanism files that somebody changed: refused with the project's own error, or what they say was verified on them.

None may raise anything else, take much memory, or give a mechanism whose guarantees were not checked on its bytes.
"""

import hashlib
import json
import tracemalloc
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privacygames as pg
from exact import holds_exactly
from privacygames.mechanism import Mechanism, certify, read_container
from privacygames.mechanism_files import finite_mechanism, load_bytes

WEIGHTS = np.array([[2, 1, 1], [1, 2, 1], [1, 1, 2]], np.int64) << 60
REFUSED = (pg.InvalidFile, pg.GuaranteeViolated)
MOST_MEMORY = 700 * 2**20
"""Bytes that the worst of these files may take while it is read; all of them have less than 8 MB."""

Parts = tuple[dict[str, Any], list[bytes]]


def whole() -> Mechanism:
    """A mechanism whose file has all there is: sets, subsets, several adversaries, dual values, a matrix of its own."""
    space = pg.Sets([{"Alien", "Brazil"}, {"Élan"}, set()])
    problem = pg.Problem(pg.Prior(space, [0.5, 0.25, 0.25]), observables=pg.Subsets.all(space, at_most=2))
    curious = pg.Adversary(
        "curious", errors=[[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]], guesses=pg.Categories(["long", "short"])
    )
    sharp = pg.Adversary("sharp", prior=problem.prior.sharpen(3.0))
    return pg.design(problem, epsilon=2.0, distortion={curious: 0.05, sharp: 0.05}, worst_cost_at_most=0.9)


def plain() -> Mechanism:
    space = pg.Space.from_distances("abc", [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 2.0, 0.0]])
    return pg.design(pg.Problem(pg.Prior(space, [0.5, 0.25, 0.25]), distance="hamming"), epsilon=1.0, distortion=0.2)


FILES: dict[str, bytes] = {
    "whole": whole().to_bytes(),
    "plain": plain().to_bytes(),
    "bare": plain().to_bytes(dual_solution=False),
    "format 1": (Path(__file__).parent / "format-1" / "sets.pgm").read_bytes(),
}


def outcome(content: bytes) -> Mechanism | None:
    """The mechanism in a file, with what it says checked once more by exact arithmetic; None where it is refused."""
    try:
        loaded = finite_mechanism(load_bytes(content))
    except REFUSED:
        return None
    assert holds_exactly(loaded.statement)
    return loaded


def taken_apart(content: bytes) -> tuple[bytes, dict[str, Any], bytes]:
    first, second, rest = content.split(b"\n", 2)
    size = int(second.split()[1])
    return first, json.loads(rest[:size]), rest[size:]


def sealed(first: bytes, header: Any, body: bytes) -> bytes:
    """A file with lengths and checksum made right, as a forger would."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    digest = hashlib.sha256(text + body).hexdigest()
    return first + f"\n{digest} {len(text)} {len(body)}\n".encode() + text + body


def arrays_of(header: dict[str, Any], body: bytes) -> list[bytes]:
    sizes = [int(np.prod(each["shape"])) * np.dtype(each["type"]).itemsize for each in header["arrays"]]
    starts = np.cumsum([0, *sizes]).tolist()
    return [body[start : start + size] for start, size in zip(starts, sizes, strict=False)]


def at_of(header: dict[str, Any], name: str) -> int:
    return next(at for at, each in enumerate(header["arrays"]) if each["name"] == name)


@pytest.mark.parametrize("name", FILES)
def test_every_flipped_byte_and_every_truncation_is_refused(name: str) -> None:
    content = FILES[name]
    for at in range(len(content)):
        flipped = bytearray(content)
        flipped[at] ^= 1 << (at % 8)
        assert outcome(bytes(flipped)) is None
        assert outcome(content[:at]) is None
    assert outcome(content + b"\0") is None
    assert outcome(content * 2) is None


@pytest.mark.parametrize("name", FILES)
def test_every_flipped_byte_of_a_forged_file_is_refused_or_verified(name: str) -> None:
    """With the checksum made right: each byte of the header and of the arrays, one after the other."""
    first, second, rest = FILES[name].split(b"\n", 2)
    size = int(second.split()[1])
    generator = np.random.default_rng(0)
    read = 0
    for at in range(len(rest)):
        flipped = bytearray(rest)
        flipped[at] ^= 1 << int(generator.integers(8))
        read += outcome(sealed(first, bytes(flipped[:size]), bytes(flipped[size:]))) is not None
    assert read < len(rest)


@pytest.mark.parametrize("name", FILES)
def test_cut_forged_files_are_refused(name: str) -> None:
    first, header, body = taken_apart(FILES[name])
    text = json.dumps(header).encode()
    for cut in range(0, len(body), 7):
        assert outcome(sealed(first, header, body[:cut])) is None
        assert outcome(sealed(first, header, body + body[:cut] + b"\0")) is None
    for cut in range(0, len(text) - 1, 3):
        assert outcome(sealed(first, text[:cut], body)) is None
        assert outcome(sealed(first, text[:cut], text[cut:] + body)) is None


@pytest.mark.parametrize("name", FILES)
def test_sections_in_another_order_say_the_same(name: str) -> None:
    first, header, body = taken_apart(FILES[name])
    parts = arrays_of(header, body)
    order = np.random.default_rng(3).permutation(len(parts)).tolist()
    moved = header | {"arrays": [header["arrays"][at] for at in order]}
    backward = dict(reversed(moved.items()))
    loaded, original = outcome(sealed(first, backward, b"".join(parts[at] for at in order))), outcome(FILES[name])
    assert loaded is not None
    assert original is not None
    assert loaded.digest == original.digest
    assert loaded.certificate == original.certificate
    assert loaded.to_bytes() == original.to_bytes()
    one, other = sorted(order[:2])  # the list alone: what it says is then of other arrays
    listed = list(header["arrays"])
    listed[one], listed[other] = listed[other], listed[one]
    exchanged = outcome(sealed(first, header | {"arrays": listed}, body))
    assert exchanged is None or exchanged.digest == original.digest


def forgeries() -> Iterator[tuple[str, Callable[[dict[str, Any], list[bytes]], Any]]]:
    """What a forger does to a header and its arrays, by name."""

    def with_entry(**changes: Any) -> Callable[[dict[str, Any], list[bytes]], Any]:
        return lambda header, _: header["arrays"][0].update(changes)

    def there_twice(header: dict[str, Any], parts: list[bytes]) -> None:
        header["arrays"].append(header["arrays"][0])
        parts.append(parts[0])

    yield "listed twice", lambda header, _: header["arrays"].append(header["arrays"][0])
    yield "there twice", there_twice
    yield "missing", lambda header, parts: (header["arrays"].pop(), parts.pop())
    yield "larger", with_entry(shape=[2**31, 2**31])
    yield "larger than there is", with_entry(shape=[2**62])
    yield "empty and endless", with_entry(shape=[0, 2**31])
    yield "negative", with_entry(shape=[-3, -3])
    yield "transposed", with_entry(shape=[9, 1])
    yield "of another type", with_entry(type="<f8")
    yield "of objects", with_entry(type="|O")
    yield "of records", with_entry(type="<i8,<i8")
    yield "of no dimension", with_entry(shape=[])
    yield "of many dimensions", with_entry(shape=[1] * 64)
    yield "no list", lambda header, _: header.update(arrays={"weights": 0})
    yield "no entries", lambda header, _: header.update(arrays=[])
    yield "bits", lambda header, _: header.update(bits=2**70)
    yield "few bits", lambda header, _: header.update(bits=-1)
    yield "no hashes", lambda header, _: header.update(hashes={})
    yield "an endless number", lambda header, _: header["promises"].update(epsilon=10**400)
    yield "another promise", lambda header, _: header["promises"].update(epsilon=1e-9)
    yield "an unknown promise", lambda header, _: header["promises"].update(delta=0.1)
    yield "a promise of nothing", lambda header, _: header.update(promises={})


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(("what", "change"), list(forgeries()), ids=[what for what, _ in forgeries()])
def test_forged_headers_are_refused(name: str, what: str, change: Callable[..., Any]) -> None:
    first, header, body = taken_apart(FILES[name])
    forged, parts = deepcopy(header), arrays_of(header, body)
    change(forged, parts)
    assert outcome(sealed(first, forged, b"".join(parts))) is None


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 100_000,
        b'{"arrays": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"arrays": [], "bits": ' + b"9" * 100_000 + b"}",
        b'{"arrays": [], "bits": NaN}',
        b'{"arrays": [], "bits": 1e999}',
        b'{"arrays": [], "secrets": "\\ud800"}',
        b"\xff\xfe{}",
        b"null",
        b"",
    ],
    ids=lambda text: repr(text[:20]),
)
def test_headers_that_are_no_header(text: bytes) -> None:
    assert outcome(sealed(b"privacygames mechanism 2", text, b"")) is None


def test_a_key_named_twice_is_refused() -> None:
    """Readers differ in which one they take: one would verify a guarantee that another does not see."""
    first, header, body = taken_apart(FILES["plain"])
    text = json.dumps(header).encode()
    for extra in (b'{"bits": 62, ', b'{"promises": {"epsilon": 0.1}, '):
        assert outcome(sealed(first, extra + text[1:], body)) is None


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("lengths", [b"0 0", b"99999999999 0", b"-1 5", b"1e3 4", b"1 2 3", b"\xb2 1", b"", b"9" * 300])
def test_forged_lengths_are_refused(name: str, lengths: bytes) -> None:
    first, second, rest = FILES[name].split(b"\n", 2)
    assert outcome(first + b"\n" + second.split()[0] + b" " + lengths + b"\n" + rest) is None


@pytest.mark.parametrize("name", FILES)
def test_exchanged_weights_and_labels_are_refused_or_another_mechanism(name: str) -> None:
    """Whatever comes back says what it is: its digest is another one, and its guarantees hold of what it has."""
    first, header, body = taken_apart(FILES[name])
    original = finite_mechanism(load_bytes(FILES[name]))
    n, m = original.weights.shape
    seen = 0
    for first_one, second_one in ((0, 1), (1, 2), (0, 2)):
        order = list(range(n))
        order[first_one], order[second_one] = order[second_one], order[first_one]
        parts = arrays_of(header, body)
        parts[at_of(header, "weights")] = original.weights[order].tobytes()
        columns = list(range(m))
        columns[first_one], columns[second_one] = columns[second_one], columns[first_one]
        exchanged = arrays_of(header, body)
        exchanged[at_of(header, "weights")] = np.ascontiguousarray(original.weights[:, columns]).tobytes()
        labels = deepcopy(header)
        named = next(key for key in ("sets", "labels") if key in labels["secrets"])
        listed = labels["secrets"][named]
        listed[first_one], listed[second_one] = listed[second_one], listed[first_one]
        for forged in (
            sealed(first, header, b"".join(parts)),
            sealed(first, header, b"".join(exchanged)),
            sealed(first, labels, body),
        ):
            loaded = outcome(forged)
            if loaded is not None:
                seen += 1
                assert loaded.digest != original.digest
    assert seen > 0


def test_exchanged_matrices_are_refused() -> None:
    first, header, body = taken_apart(FILES["plain"])
    for one in ("prior", "cost", "distance"):
        parts = arrays_of(header, body)
        at = at_of(header, one)
        parts[at] = np.frombuffer(parts[at], "<f8")[::-1].tobytes()
        changed = b"".join(parts)
        assert changed == body or outcome(sealed(first, header, changed)) is None


# Small files that describe much.


def nested(levels: int, inner: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Subsets of subsets of … a space."""
    for _ in range(levels):
        inner = {"kind": "subsets", "of": inner, **deepcopy(more)}
    return inner


def three_of(inner: dict[str, Any]) -> dict[str, Any]:
    """As many labels as the file's arrays need, of a space that has more."""
    return {"kind": "subsets", "of": inner, "members": [[0], [1], [2]], "labels": ["x", "y", "z"]}


CELLS = {"kind": "grid", "columns": 1000, "rows": 1000}
ONE_OF_MANY = {"kind": "subsets", "of": CELLS, "members": [[0]]}
THREE = {"kind": "labels", "labels": ["a", "b", "c"]}
LONG = {"kind": "labels", "labels": ["x" * 1_000_000, *map(str, range(999))]}

LARGE: dict[str, dict[str, Any]] = {
    "many grids within": {"kind": "product", "parts": [ONE_OF_MANY] * 16},
    "products of products of grids": {
        "kind": "product",
        "parts": [{"kind": "product", "parts": [ONE_OF_MANY] * 16} for _ in range(16)],
    },
    "names that double": nested(60, THREE, members=[[0, 1], [0, 2], [1, 2]]),
    "a long name many times": three_of({"kind": "subsets", "of": LONG, "members": [[0, at] for at in range(1, 999)]}),
    "a long name in a product": three_of(
        {"kind": "product", "parts": [LONG, {"kind": "numbers", "from": 1, "to": 1000}]}
    ),
    "many small tables": {
        "kind": "product",
        "parts": [
            {
                "kind": "product",
                "parts": [{"kind": "product", "parts": [{"kind": "labels", "labels": ["a"]}] * 16}] * 16,
            }
        ]
        * 16,
    },
    "deeper than can be read": nested(3000, THREE, members=[[0], [1], [2]]),
    "many numbers": {"kind": "numbers", "from": -(2**52), "to": 2**52},
    "a grid of a word": {"kind": "grid", "columns": "1000", "rows": [1]},
}


def traced(content: bytes) -> int:
    """How much memory reading a file takes at most; it must be refused."""
    tracemalloc.start()
    try:
        assert outcome(content) is None
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("what", "where"),
    [
        pytest.param(what, where, marks=[pytest.mark.slow] if "grids" in what else [])
        for what in LARGE
        for where in ("secrets", "observables")
    ],
)
def test_small_files_cannot_describe_large_spaces(what: str, where: str) -> None:
    first, header, body = taken_apart(FILES["plain"])
    try:
        forged = sealed(first, header | {where: LARGE[what]}, body)
    except RecursionError:
        text = json.dumps(header | {where: None})
        deep = '{"kind": "subsets", "members": [[0], [1], [2]], "of": ' * 3000 + '"secrets"' + "}" * 3000
        forged = sealed(first, text.replace(f'"{where}": null', f'"{where}": {deep}').encode(), body)
    assert len(forged) < 8_000_000
    assert traced(forged) < MOST_MEMORY


def one_secret(answers: int, guesses: int, adversaries: int) -> bytes:
    """A forged file with one secret: what it says of answers and guesses multiplies."""
    space = pg.Numbers([1])
    curious = pg.Adversary("curious", errors=[[0.0]])
    problem = pg.Problem(pg.Prior.uniform(space), np.zeros((1, 1)))
    bounds = pg.Bounds(epsilon=1.0, distortion={curious: 0.0})
    made = certify(problem, bounds, np.array([[2**62]]), origin="given")
    first, header, body = taken_apart(made.to_bytes())
    arrays = dict(zip([each["name"] for each in header["arrays"]], arrays_of(header, body), strict=True))
    shapes = {each["name"]: each for each in header["arrays"]}
    weights = np.zeros((1, answers), np.int64)
    weights[0, 0] = 2**62
    cost = np.zeros((answers, 1))
    arrays |= {"weights": weights.tobytes(), "cost": cost.tobytes(), "errors_x": np.zeros((guesses, 1)).tobytes()}
    shapes["weights"]["shape"], shapes["cost"]["shape"] = [1, answers], [answers, 1]
    header["arrays"].append({"name": "errors_x", "type": "<f8", "shape": [guesses, 1]})
    promise = {"distortion": 0.0, "prior": None, "errors": "errors_x", "guesses": None}
    header["promises"]["against"] = [{"name": f"adversary {number}", **promise} for number in range(adversaries)]
    header["observables"] = {"kind": "numbers", "from": 1, "to": answers}
    header["hashes"]["cost"] = hashlib.sha256(f"<f8[{answers}, 1]".encode() + cost.tobytes()).hexdigest()
    return sealed(first, header, b"".join(arrays[each["name"]] for each in header["arrays"]))


def test_one_secret_may_have_many_answers_and_guesses() -> None:
    assert outcome(one_secret(300, 20, 3)) is not None


@pytest.mark.parametrize(
    ("answers", "guesses", "adversaries"), [(30_000, 30_000, 1), (3, 900_000, 100), (3, 3, 101), (3, 2, 30_000)]
)
def test_small_files_cannot_describe_large_attacks(answers: int, guesses: int, adversaries: int) -> None:
    forged = one_secret(answers, guesses, adversaries)
    assert len(forged) < 8_000_000
    assert traced(forged) < MOST_MEMORY


# Files without prior and cost.


def test_mutated_public_files_are_refused_or_verified(tmp_path: Path) -> None:
    path = tmp_path / "public.pgm"
    pg.PublicMechanism.of(plain()).save(path)
    first, second, rest = path.read_bytes().split(b"\n", 2)
    size, digest = int(second.split()[1]), pg.load_public(path).digest
    generator = np.random.default_rng(1)
    for at in range(len(rest)):
        flipped = bytearray(rest)
        flipped[at] ^= 1 << int(generator.integers(8))
        path.write_bytes(first + b"\n" + second + b"\n" + flipped)
        with pytest.raises(pg.InvalidFile):
            pg.load_public(path)
        path.write_bytes(sealed(first, bytes(flipped[:size]), bytes(flipped[size:])))
        try:
            loaded = pg.load_public(path)
            assert isinstance(loaded, pg.PublicMechanism)
        except REFUSED:
            continue
        assert loaded.certificate.largest_ratio <= 1
        assert loaded.digest != digest or np.array_equal(loaded.weights, pg.PublicMechanism.of(plain()).weights)


@pytest.mark.parametrize("extra", ["header", "promises", "arrays"])
def test_nothing_else_travels_with_a_public_file(tmp_path: Path, extra: str) -> None:
    """It says that prior and cost are withheld: then they are not in it under another name."""
    path = tmp_path / "public.pgm"
    pg.PublicMechanism.of(plain()).save(path)
    first, header, body = taken_apart(path.read_bytes())
    if extra == "arrays":
        header["arrays"].append({"name": "prior", "type": "<f8", "shape": [3]})
        body += np.array([0.5, 0.25, 0.25]).tobytes()
    else:
        (header if extra == "header" else header["promises"])["prior"] = [0.5, 0.25, 0.25]
    path.write_bytes(sealed(first, header, body))
    read_container(path)  # the container is in order
    with pytest.raises(pg.InvalidFile):
        pg.load_public(path)
