"""The release key: who has it can repeat every draw, and nobody else learns anything of it."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

import privacygames as pg
from privacygames.tables import ReleaseKey, apply
from privacygames.tables.release_key import KeyedBits
from privacygames.tables.row_identity import RowIdentity, resolve_identity


def test_bits_are_aes_of_each_block() -> None:
    """Block by block, against the cipher used in the plainest way."""
    key = bytes(range(32))
    identity = np.array([[7, 0], [8, 0], [2**63 + 5, 9]], dtype=np.uint64)
    secrets = np.array([3, 0, 12], dtype=np.int64)
    for row, secret, word in zip(identity, secrets, KeyedBits(key).words(identity, secrets), strict=True):
        block = int(row[0]).to_bytes(8, "little") + (int(row[1]) ^ int(secret)).to_bytes(8, "little")
        encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
        expected = encryptor.update(block) + encryptor.finalize()
        assert int(word) == int.from_bytes(expected[:8], "little")


def test_published_vector() -> None:
    """FIPS 197, appendix C.3."""
    block = np.frombuffer(bytes.fromhex("00112233445566778899aabbccddeeff"), dtype="<u8").reshape(1, 2)
    found = KeyedBits(bytes(range(32))).encrypt(block.astype(np.uint64))
    assert found.astype("<u8").tobytes().hex() == "8ea2b7ca516745bfeafc49904b496089"


def test_words_look_uniform_and_rows_and_secrets_independent() -> None:
    bits = KeyedBits(ReleaseKey().derive("test"))
    identity = RowIdentity().tags(ReleaseKey(), {}, 20_000, 0)
    words = [bits.words(identity, np.full(20_000, secret)) for secret in (0, 1)]
    for each in words:
        counts = np.bincount((each >> np.uint64(60)).astype(int), minlength=16)
        assert ((counts - 1250) ** 2 / 1250).sum() < 60  # chi-square, 15 degrees: once in ten million
    agree = float((words[0] >> np.uint64(63) == words[1] >> np.uint64(63)).mean())
    assert abs(agree - 0.5) < 0.02  # six standard deviations are 0.021


def test_purposes_have_keys_of_their_own() -> None:
    key = ReleaseKey(bytes(32))
    purposes = [("a", "b"), ("ab",), ("a", "", "b"), ("b", "a"), ()]
    assert len({key.derive(*purpose) for purpose in purposes}) == len(purposes)


def test_a_key_is_in_no_representation() -> None:
    key = ReleaseKey()
    secret = pickle.dumps(key)
    assert key == pickle.loads(secret)  # workers need it
    assert ReleaseKey() != key
    for shown in (repr(key), str(key), f"{key}", key.check_value()):
        assert not any(part in shown for part in (repr(key.derive("x")), key.derive("check value").hex()))
    assert repr(key) == "ReleaseKey(hidden)"


def test_a_key_file_is_its_owners(tmp_path: Path) -> None:
    path = tmp_path / "release.key"
    key = ReleaseKey.create(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert ReleaseKey.load(path) == key
    with pytest.raises(pg.InvalidProblem, match="never replaced"):
        ReleaseKey.create(path)
    path.chmod(0o644)
    with pytest.raises(pg.InvalidProblem, match="read by others"):
        ReleaseKey.load(path)
    path.chmod(0o600)
    path.write_text(path.read_text().replace("release key 2", "release key 1"))
    with pytest.raises(pg.InvalidFile, match=r"format 1.*the same rows again"):
        ReleaseKey.load(path)
    path.write_text("privacygames release key 2\nnot hex\n")
    with pytest.raises(pg.InvalidFile, match="not a release key"):
        ReleaseKey.load(path)
    with pytest.raises(pg.UnreadableFile):
        ReleaseKey.load(tmp_path / "none.key")


def test_a_wrong_key_is_refused() -> None:
    for wrong in (b"short", "x" * 32, 5):
        with pytest.raises(pg.InvalidProblem, match="32 bytes"):
            ReleaseKey(wrong)  # type: ignore[arg-type]


KEY = ReleaseKey(bytes(range(32)))


def tags(columns: dict[str, pa.Array]) -> list[list[int]]:
    count = len(next(iter(columns.values())))
    found: list[list[int]] = RowIdentity(tuple(columns)).tags(KEY, columns, count, 0).tolist()
    return found


def test_key_columns_say_the_same_in_every_type_engines_have() -> None:
    names, numbers = ["ann", "bob", "ann"], [1, 2**40, 3]
    texts = [pa.array(names), pa.array(names, pa.large_string()), pa.array(names).dictionary_encode()]
    wholes = [pa.array(numbers), pa.array(numbers, pa.uint64()), pa.array(numbers).dictionary_encode()]
    expected = tags({"name": texts[0], "number": wholes[0]})
    for text in texts:
        for whole in wholes:
            assert tags({"name": text, "number": whole}) == expected
    assert len({tuple(tag) for tag in expected}) == 3
    assert tags({"number": wholes[0], "name": texts[0]}) != expected
    times = pa.array([1_700_000_000_123_456], pa.timestamp("us"))
    assert tags({"t": times}) == tags({"t": times.cast(pa.timestamp("ns"))})


def test_the_position_is_the_tag_and_the_source_has_its_own_key() -> None:
    assert RowIdentity().tags(KEY, {}, 3, 5)[:, 0].tolist() == [5, 6, 7]
    assert RowIdentity(source="a").purpose() != RowIdentity(source="b").purpose()
    assert RowIdentity(("id",), source="a").purpose() == RowIdentity(("id",), source="b").purpose()


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([1.5, 2.0]), "readers round them"),
        (pa.array([2.0**53, 2.0]), "readers round them"),
        (pa.array(["a", ""]), "is empty in 1 rows"),
        (pa.array(["2024-05-01 12:00:00.1234567"]), "finer than 1 µs"),
        (pa.array([5], pa.duration("s")), "may be whole numbers"),
        (pa.array(["a", None]), "is empty in 1 rows"),
        (pa.array([1_700_000_000_123_456_789], pa.timestamp("ns")), "finer than 1 µs"),
        (pa.array([[1]]), "may be whole numbers"),
    ],
)
def test_columns_that_tell_no_rows_apart_are_refused(column: pa.Array, message: str) -> None:
    with pytest.raises(pg.InvalidProblem, match=message):
        tags({"k": column})


def test_wrong_identities_are_refused() -> None:
    plain: dict[str, object] = {"key_columns": None, "repeat": "fresh", "user": None}
    for change, message in (
        ({"repeat": "never"}, "choose 'fresh'"),
        ({"repeat": "same"}, "needs user"),
        ({"repeat": "same", "user": "u", "key_columns": "id"}, "leave key_columns out"),
        ({"key_columns": ["a", "a"]}, "each once"),
    ):
        with pytest.raises(pg.InvalidProblem, match=message):
            resolve_identity(**{**plain, **change})  # type: ignore[arg-type]


ILLS = pg.Categories(["asthma", "flu", "none"])
ILL = pg.baselines.randomised_response(pg.Problem(pg.Prior.uniform(ILLS)), epsilon=1.0)
OTHER_ILL = pg.baselines.randomised_response(pg.Problem(pg.Prior.uniform(ILLS)), epsilon=1.5)


def patients(rows: int = 30, shift: int = 0) -> pa.Table:
    ills = [ILLS.labels[(row + shift) % 3] for row in range(rows)]
    return pa.table({"id": range(rows), "day": ["mon"] * rows, "ill": ills, "next": ills[::-1]})


def test_a_key_remembers_what_it_released_and_refuses_the_rest(tmp_path: Path) -> None:
    ReleaseKey.create(tmp_path / "k.key")

    def released(data: pa.Table, rules: dict[str, Any], key_columns: Any = "id") -> pa.Table:
        return apply(data, rules, key=ReleaseKey.load(tmp_path / "k.key"), key_columns=key_columns)[0]

    first = released(patients(), {"ill": ILL})
    assert released(patients(), {"ill": ILL}).equals(first)
    assert released(patients().take(list(range(29, -1, -1))), {"ill": ILL}).sort_by("id").equals(first.sort_by("id"))
    content = (tmp_path / "k.key").read_bytes()
    for data, rules, columns, message in (
        (patients(shift=1), {"ill": ILL}, "id", "of other rows or other values"),
        (patients(31), {"ill": ILL}, "id", "of other rows or other values"),
        (patients(29), {"ill": ILL}, "id", "of other rows or other values"),
        (patients(), {"ill": OTHER_ILL}, "id", "by another mechanism"),
        (patients(), {"ill": ILL}, ["id", "day"], "with rows told apart by id"),
        (patients(), {"next": ILL, "ill": OTHER_ILL}, "id", "by another mechanism"),
    ):
        with pytest.raises(pg.InvalidProblem, match=message) as raised:
            released(data, rules, columns)
        assert "flu" not in str(raised.value)
    assert (tmp_path / "k.key").read_bytes() == content
    both = released(patients(), {"ill": ILL, "next": ILL})
    assert both["ill"].equals(first["ill"])
    assert len((tmp_path / "k.key").read_text().splitlines()) == 4  # two lines of a key, and two uses
    assert (tmp_path / "k.key").stat().st_mode & 0o777 == 0o600


def test_a_key_in_memory_remembers_too_and_travels_without_its_memory() -> None:
    key = ReleaseKey()
    apply(patients(), {"ill": ILL}, key=key, key_columns="id")
    with pytest.raises(pg.InvalidProblem, match="of other rows"):
        apply(patients(shift=1), {"ill": ILL}, key=key, key_columns="id")
    apply(patients(shift=1), {"ill": ILL}, key=pickle.loads(pickle.dumps(key)), key_columns="id")


def test_draws_of_another_mechanism_columns_or_key_columns_are_independent() -> None:
    """What a key's memory would refuse, and a copy of the key draws: no bits in common."""
    rows, secret = 40_000, bytes(range(32))
    data = pa.table({"id": range(rows), "day": ["mon"] * rows, "ill": ["flu"] * rows, "next": ["flu"] * rows})

    def truthful(rule: dict[str, Any], key_columns: Any = "id") -> Any:
        made, _ = apply(data, rule, key=ReleaseKey(secret), key_columns=key_columns)
        return np.array(made[next(iter(rule))].to_pylist()) == "flu"

    first = truthful({"ill": ILL})
    assert (first == truthful({"ill": ILL})).all()
    for other in (truthful({"ill": OTHER_ILL}), truthful({"next": ILL}), truthful({"ill": ILL}, ["id", "day"])):
        assert abs(float(np.corrcoef(first, other)[0, 1])) < 0.03  # six standard deviations


def test_a_key_s_file_that_was_replaced_altered_or_torn(tmp_path: Path) -> None:
    path = tmp_path / "k.key"
    key = ReleaseKey.create(path)
    apply(patients(), {"ill": ILL}, key=key, key_columns="id")
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"ill"', b'"ail"'))
    with pytest.raises(pg.InvalidFile, match="was altered after it was written"):
        apply(patients(), {"ill": ILL}, key=key, key_columns="id")
    path.write_bytes(content + b'{"columns": ["ne')
    apply(patients(), {"next": ILL}, key=ReleaseKey.load(path), key_columns="id")
    assert path.read_bytes().startswith(content)
    assert len(path.read_bytes().splitlines()) == 4
    path.unlink()
    ReleaseKey.create(path)
    with pytest.raises(pg.InvalidFile, match="was replaced since it was opened"):
        apply(patients(), {"ill": ILL}, key=key, key_columns="id")
    path.write_bytes(b"\n".join(content.splitlines()[:2]))  # no line break at its end: nothing of it is cut off
    with pytest.raises(pg.InvalidFile, match="first lines are damaged"):
        apply(patients(), {"ill": ILL}, key=ReleaseKey.load(path), key_columns="id")
    assert path.read_bytes() == b"\n".join(content.splitlines()[:2])
