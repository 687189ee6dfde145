"""Files of fleets that were changed at random: refused with the library's own errors, or what was designed."""

import random
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privacygames as pg
from fleets import GRID, forge, payloads_in, people
from privacygames.fleet import Fleet, add, compact, update
from privacygames.fleet import design as design_fleet
from privacygames.fleet.person_record import certified_mechanism, name_hash
from privacygames.fleet.records import require_cells
from privacygames.fleet.shared_problem import SharedProblem, decode_shared, read_shared
from privacygames.fleet.snapshot import ENTRY_BYTES, INDEX_HEADER_BYTES
from privacygames.mechanism import container_content, decode_record, encode_record, parse_container

FILES = ("people.dat", "people.idx", "shared.pgm")
EPSILON = 0.8


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fleet with a past: an earlier record of somebody is still in its file."""
    folder = tmp_path_factory.mktemp("fleet") / "people"
    earlier = people(3) | {"user-1": pg.Prior.uniform(GRID)}
    design_fleet(earlier, out=folder, epsilon=EPSILON, jobs=1)
    update(folder, {"user-1": people(3)["user-1"]}, jobs=1)
    return folder


def keeps_its_guarantee(mechanism: pg.Mechanism) -> bool:
    """Whether no ratio exceeds what ε allows, by hand."""
    given = mechanism.weights[:, mechanism.weights.any(axis=0)].astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        exponents = np.nan_to_num(np.log(given[:, None, :] / given[None, :, :]), nan=0.0).max(axis=2)
    return bool((exponents <= EPSILON * mechanism.distinguishability + 1e-9).all())


def use(folder: Path) -> str:
    """Ask everything of a folder; whatever is answered must be right, and refusals must be the library's own."""
    outcomes = []
    for ask in (_verified, _asked, _released):
        try:
            ask(folder)
            outcomes.append("harmless")
        except pg.PrivacyGamesError:
            outcomes.append("refused")
    return outcomes[0]


def _verified(folder: Path) -> None:
    assert Fleet(folder).verify() == 3


def _asked(folder: Path) -> None:
    fleet = Fleet(folder)
    for name in people(3):
        mechanism = fleet[name]
        assert mechanism.bounds.epsilon == EPSILON
        assert mechanism.problem.prior == people(3)[name]
        assert keeps_its_guarantee(mechanism)
    assert sorted(fleet) == sorted(people(3))


def _released(folder: Path) -> None:
    """Drawing opens records in another way than asking for mechanisms."""
    fleet = Fleet(folder)
    for name in people(3):
        fleet.sample(name, "cell-5")
        assert keeps_its_guarantee(fleet[name])
        assert set(fleet.prior_source(name)) == {"visits", "prior_from"}


def _swap(content: bytearray, draw: random.Random) -> None:
    one, other, size = draw.randrange(len(content)), draw.randrange(len(content)), draw.randrange(1, 64)
    one, other = sorted((one, other))
    first, second = bytes(content[one : one + size]), bytes(content[other : other + size])
    content[other : other + size] = first
    content[one : one + size] = second


MUTATIONS: dict[str, Callable[[bytearray, random.Random], None]] = {
    "flip": lambda content, draw: content.__setitem__(
        (at := draw.randrange(len(content))), content[at] ^ (1 << draw.randrange(8))
    ),
    "truncate": lambda content, draw: content.__delitem__(slice(draw.randrange(len(content)), None)),
    "cut out": lambda content, draw: content.__delitem__(
        slice(at := draw.randrange(len(content)), at + draw.randrange(1, 80))
    ),
    "insert": lambda content, draw: content.__setitem__(
        slice(at := draw.randrange(len(content)), at), draw.randbytes(draw.randrange(1, 80))
    ),
    "overwrite": lambda content, draw: content.__setitem__(
        slice(at := draw.randrange(len(content)), at + 8),
        draw.choice([b"\0" * 8, b"\xff" * 8, draw.randbytes(8)])[: len(content) - at],
    ),
    "repeat": lambda content, draw: content.extend(content[draw.randrange(len(content)) :]),
    "swap": _swap,
    "empty": lambda content, draw: content.clear(),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("mutation", MUTATIONS)
def test_changed_files_are_refused_or_harmless(made: Path, tmp_path: Path, name: str, mutation: str) -> None:
    draw = random.Random(f"{name} {mutation}")
    original = (made / name).read_bytes()
    outcomes = set()
    for turn in range(1 if mutation == "empty" else 25):
        content = bytearray(original)
        MUTATIONS[mutation](content, draw)
        folder = Path(shutil.copytree(made, tmp_path / str(turn)))
        (folder / name).write_bytes(content)
        if content != original:
            outcomes.add(use(folder))
    if name != "people.dat":  # every byte of these counts
        assert outcomes == {"refused"}
    elif mutation == "repeat":  # what follows the records that count is nobody's
        assert outcomes == {"harmless"}
    else:
        assert "refused" in outcomes


def test_changed_index_entries_whose_checksum_fits_are_refused(made: Path, tmp_path: Path) -> None:
    """Offsets, sizes, checksums and hashes of names moved between people, dropped, doubled and made up."""
    draw = random.Random(5)
    rest = (made / "people.idx").read_bytes()[36:]
    entries = [rest[at : at + ENTRY_BYTES] for at in range(INDEX_HEADER_BYTES, len(rest), ENTRY_BYTES)]
    outcomes = []
    for turn in range(60):
        changed = [bytearray(entry) for entry in entries]
        one, other = draw.sample(range(len(changed)), 2)
        first, last = draw.choice([(0, 16), (16, 24), (24, 32), (32, 64), (16, 64), (24, 64)])
        kind = turn % 4
        if kind == 0:
            changed[one][first:last] = changed[other][first:last]
        elif kind == 1:
            changed[one][first:last], changed[other][first:last] = changed[other][first:last], changed[one][first:last]
        elif kind == 2:
            changed[one][first:last] = draw.randbytes(last - first)
        else:
            changed[one][first] ^= 1
        if draw.random() < 0.5:
            changed.sort()
        index = rest[:INDEX_HEADER_BYTES] + b"".join(map(bytes, changed))
        folder = Path(shutil.copytree(made, tmp_path / str(turn)))
        (folder / "people.idx").write_bytes(b"PGI2" + sha256(index).digest() + index)
        outcomes.append(use(folder))
    assert outcomes.count("harmless") <= 6  # the order of what was swapped whole


def test_earlier_records_and_records_of_others_are_refused(made: Path, tmp_path: Path) -> None:
    """Moved between people, between generations, and between fleets; every checksum fits."""
    weaker = design_fleet(people(3), out=tmp_path / "weaker", epsilon=3.0, jobs=1)
    other = payloads_in(made)
    for turn, (payload, error) in enumerate(
        (
            (other[name_hash("user-1")], pg.InvalidFile),  # another person's
            (payloads_in(weaker.folder)[name_hash("user-0")], pg.GuaranteeViolated),  # weaker guarantee
        )
    ):
        folder = Path(shutil.copytree(made, tmp_path / str(turn)))
        forge(folder, {"user-0": payload})
        fleet = Fleet(folder)
        for ask in (lambda: fleet["user-0"], lambda: fleet.sample("user-0", "cell-1"), fleet.verify):  # noqa: B023
            with pytest.raises((error, pg.GuaranteeViolated)):
                ask()
        assert fleet.sample("user-2", "cell-1")


@pytest.fixture(scope="module")
def shared(made: Path) -> SharedProblem:
    return require_cells(decode_shared(read_shared(made)))


@settings(max_examples=400)
@given(data=st.data())
def test_changed_payloads_are_refused_or_keep_the_guarantee(
    made: Path, shared: SharedProblem, data: st.DataObject
) -> None:
    """What a stranger can write who computes every checksum: only the verifier is left."""
    header, arrays = decode_record(payloads_in(made)[name_hash("user-0")])
    changed = {name: array.copy() for name, array in arrays.items()}
    kind = data.draw(st.sampled_from(["value", "drop", "shape", "type", "swap", "header", "bytes"]))
    name = data.draw(st.sampled_from(sorted(changed)))
    if kind == "value":
        at = data.draw(st.integers(0, changed[name].size - 1))
        flat = changed[name].reshape(-1)
        flat[at] = data.draw(
            st.sampled_from([np.nan, -1.0, np.inf, 1e300, 0.5]) if flat.dtype.kind == "f" else st.integers(0, 255)
        )
    elif kind == "drop":
        del changed[name]
    elif kind == "shape":
        changed[name] = changed[name].reshape(-1)[: data.draw(st.integers(0, changed[name].size))]
    elif kind == "type":
        with np.errstate(all="ignore"):
            changed[name] = changed[name].astype(data.draw(st.sampled_from(["<f8", "<i8", "<u4", "<u2", "|u1"])))
    elif kind == "swap":
        second = data.draw(st.sampled_from(sorted(changed)))
        changed[name], changed[second] = changed[second], changed[name]
    elif kind == "header":
        key = data.draw(st.sampled_from(["name", "provenance", "visits", "prior_from"]))
        header = header | {key: data.draw(st.sampled_from([None, 5, "x", [], {}, -1, 1e300, {"solver": 1}]))}
    payload = encode_record({key: value for key, value in header.items() if key != "arrays"}, changed)
    if kind == "bytes":
        at = data.draw(st.integers(0, len(payload) - 1))
        payload = payload[:at] + bytes([data.draw(st.integers(0, 255))]) + payload[at + 1 :]
    try:
        mechanism = certified_mechanism(payload, shared)
    except (pg.InvalidFile, pg.GuaranteeViolated):
        return
    assert keeps_its_guarantee(mechanism)
    assert (mechanism.weights.sum(axis=1) == 2**62).all()


@settings(max_examples=200)
@given(data=st.data())
def test_changed_shared_parts_are_refused_or_another_problem(made: Path, data: st.DataObject) -> None:
    """Its header is a stranger's, too: kinds, sizes, guarantees; the checksum is computed again."""
    header, arrays = parse_container(read_shared(made))
    place = data.draw(st.sampled_from(["promises", "secrets", "observables", "fleet", "arrays"]))
    odd: st.SearchStrategy[object] = st.sampled_from(
        [None, True, -1, 0, 1e300, 10**12, "x", [], {}, {"kind": "grid"}, [[]], "cost"]
    )
    if place == "arrays":
        arrays = arrays | {data.draw(st.sampled_from(sorted(arrays))): np.array([[1.0, data.draw(st.floats(0, 9))]])}
    elif isinstance(header[place], dict):
        key = data.draw(st.sampled_from(sorted(header[place])))
        header = header | {place: header[place] | {key: data.draw(odd)}}
    else:
        header = header | {place: data.draw(odd)}
    content = b"".join(container_content({k: v for k, v in header.items() if k not in ("arrays", "format")}, arrays))
    try:
        decoded = require_cells(decode_shared(content))
    except pg.InvalidFile:
        return
    assert decoded.problem.shape == (12, 12)


def test_verbs_on_changed_folders_are_refused_or_right(made: Path, tmp_path: Path) -> None:
    """Whoever changes a fleet reads what is there, and what an interrupted run left behind."""
    draw, more = random.Random(7), {"user-3": people(4)["user-3"]}
    tail = {"user-3": payloads_in(add(Path(shutil.copytree(made, tmp_path / "a")), more, jobs=1).folder)}
    assert tail
    interrupted = Path(shutil.copytree(made, tmp_path / "interrupted"))
    shutil.copy(tmp_path / "a" / "people.dat", interrupted / "people.dat")  # a record that no index counts yet
    outcomes = set()
    for turn in range(40):
        folder = Path(shutil.copytree(interrupted, tmp_path / str(turn)))
        name = draw.choice(FILES)
        content = bytearray((folder / name).read_bytes())
        MUTATIONS[draw.choice(["flip", "truncate", "cut out", "overwrite"])](content, draw)
        (folder / name).write_bytes(content)
        try:
            (add(folder, more, jobs=1) if turn % 2 else compact(folder)).verify()
        except pg.PrivacyGamesError:
            outcomes.add("refused")
        else:
            outcomes.add("right")
            fleet = Fleet(folder)
            assert all(keeps_its_guarantee(fleet[each]) for each in fleet)
    assert outcomes == {"refused", "right"}
