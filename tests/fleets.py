"""What tests of fleets share: people, and folders whose checksums all fit whatever is in them."""

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import numpy as np

import privacygames as pg
from privacygames.fleet.person_record import name_hash
from privacygames.fleet.snapshot import (
    RECORD_PREFIX_BYTES,
    RECORDS_MAGIC,
    RECORDS_START,
    RecordLocation,
    Snapshot,
    encode_index,
    record_prefix,
)

GRID = pg.Grid(4, 3)


def people(count: int, seed: int = 0) -> dict[str, pg.Prior]:
    """People with habits over twelve cells; the first of more people are the same."""
    rng = np.random.default_rng(seed)
    return {
        f"user-{number}": pg.Prior.from_counts(GRID, rng.integers(0, 9, 12) + (np.arange(12) == number % 12))
        for number in range(count)
    }


def payloads_in(folder: Path) -> dict[bytes, bytes]:
    """Everybody's record, by the hash of the name."""
    snapshot = Snapshot.open(folder)
    return {snapshot.hash_at(position): snapshot.record(position) for position in range(len(snapshot))}


def forge(folder: Path, payloads: Mapping[str, bytes]) -> None:
    """Put these records into a fleet as those of these people; every checksum and length fits afterwards."""
    records = payloads_in(folder) | {name_hash(name): payload for name, payload in payloads.items()}
    shared_hash, identity = Snapshot.open(folder).shared_hash, bytes(range(16))
    content, places = RECORDS_MAGIC + identity, {}
    for hashed, payload in records.items():
        places[hashed] = RecordLocation(len(content) + RECORD_PREFIX_BYTES, len(payload), sha256(payload).digest())
        content += record_prefix(len(payload), places[hashed].checksum) + payload
    assert content[:RECORDS_START] == RECORDS_MAGIC + identity
    (folder / "people.dat").write_bytes(content)
    (folder / "people.idx").write_bytes(b"".join(encode_index(shared_hash, identity, len(content), places)))
