"""Files for devices: encoding mechanisms as bytes, and decoding bytes with every part verified.

docs/reference/device-file.md describes the format, and ``device/src/open.ts`` reads it in TypeScript. Both must refuse
the same files.
"""

import os
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np

from privacygames.arrays import FloatArray, IntArray, freeze
from privacygames.atomic_io import write_bytes
from privacygames.device.byte_reader import (
    LARGEST,
    MOST_BYTES,
    MOST_MEMBERS,
    MOST_OUTPUTS,
    MOST_SECRETS,
    MOST_TEXT_BYTES,
    MOST_WEIGHTS,
    SMALLEST,
    ByteReader,
    ByteWriter,
)
from privacygames.device.device_mechanism import DeviceMechanism, DeviceOutput
from privacygames.device.disclosure import Exportable, disclosure_of
from privacygames.device.ratios import check_ratios
from privacygames.errors import InvalidFile, InvalidProblem, TooLarge, UnreadableFile
from privacygames.mechanism import Disclosure, Mechanism, PublicMechanism, well_formed
from privacygames.points import Mesh, PointTable, PublicPointMechanism
from privacygames.problem import measure_scale
from privacygames.spaces import Area, Box, Categories, Grid, Interval, Numbers, Places, Region, Sets, Space, Subsets

FIRST_LINE = b"privacygames device 1"
DISCLOSURES = {each.value.encode(): each for each in (Disclosure.COMPUTED, Disclosure.SHAREABLE)}
KINDS = ("grid", "points", "numbers", "categories", "sets")
SAME_AS_SECRETS, PLACES, NUMBERS, TEXTS, SETS = range(5)
"""What outputs are."""

MOST_LINE_BYTES = 200
MOST_UNIT_LENGTH = 40
DIGEST_BYTES = 32
MOST_CONTROLS, MOST_LEVELS, HIGHEST_DEGREE = 4000, 5, 8
"""The limits of meshes (``points/mesh.py``), which are part of the format."""

MOST_NUMBER = 2.0**53 - 1
"""Labels that are numbers are at most this in size."""

SAME_DISTANCE = 1e-9
"""Relative difference up to which a distance is taken for that of the space."""

EARTH_RADIUS_KM = 6371.0088


def write(path: str | os.PathLike[str], mechanism: Exportable) -> None:
    """Write a file for a device, readable by its owner only.

    Args:
        path: the file.
        mechanism: a mechanism that guarantees an epsilon.

    Raises:
        InvalidProblem: no device can hold it; :func:`encode` says which can be.

    >>> problem = pg.Problem(pg.Prior.uniform(pg.Numbers([1, 2, 3])), cost="absolute")
    >>> pg.device.write("numbers.pgd", pg.design(problem, epsilon=0.5))
    """
    write_bytes(path, encode(mechanism), private=True)


def read(path: str | os.PathLike[str]) -> DeviceMechanism:
    """Read a file for a device, and verify the epsilon in it.

    Raises:
        InvalidFile: the file is damaged, altered or too large.
        GuaranteeViolated: the weights do not keep the guaranteed epsilon.

    >>> problem = pg.Problem(pg.Prior.uniform(pg.Numbers([1, 2, 3])), cost="absolute")
    >>> pg.device.write("numbers.pgd", pg.design(problem, epsilon=0.5))
    >>> pg.device.read("numbers.pgd").epsilon
    0.5
    """
    try:
        with Path(path).open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UnreadableFile(path, error.strerror) from None
    return decode(content)


def encode(mechanism: Exportable, disclosure: Disclosure | None = None) -> bytes:
    r"""The bytes of a file for a device: what sampling and verification of epsilon need.

    Args:
        mechanism: a mechanism for cells, labels or points, with its prior or without. It must guarantee an epsilon,
            have at most 2048 cells or labels, which are all numbers, all texts or all sets, and at most 8192 outputs.
        disclosure: what the file says of itself; by default what :func:`disclosure_of` can tell.

    Raises:
        InvalidProblem: it has no epsilon, or labels or distances that the format does not know.
        TooLarge: it is larger than the limits above, or the file than 64 MiB.

    >>> problem = pg.Problem(pg.Prior.uniform(pg.Numbers([1, 2, 3])))
    >>> pg.device.encode(pg.baselines.exponential(problem, epsilon=0.5)).split(b"\n")[0]
    b'privacygames device 1'
    """
    epsilon = mechanism.bounds.epsilon
    if epsilon is None:
        raise InvalidProblem("only epsilon can be verified on a device, and this mechanism guarantees none")
    _require_ordinary(epsilon, "epsilon")
    writer = ByteWriter()
    writer.raw(FIRST_LINE + b"\n" + (disclosure or disclosure_of(mechanism)).value.encode() + b"\n")
    if isinstance(mechanism, Mechanism | PublicMechanism):
        _write_finite(writer, mechanism, epsilon)
    else:
        public = mechanism if isinstance(mechanism, PublicPointMechanism) else PublicPointMechanism.of(mechanism)
        _write_points(writer, public, epsilon)
    if mechanism.weights.size > MOST_WEIGHTS:
        raise TooLarge(f"a file for a device has at most {MOST_WEIGHTS} weights; this one has {mechanism.weights.size}")
    writer.array(mechanism.weights, "<u8")
    content = writer.content
    if len(content) + DIGEST_BYTES > MOST_BYTES:
        raise TooLarge(f"a file for a device has at most {MOST_BYTES} bytes")
    return content + sha256(content).digest()


def decode(content: bytes) -> DeviceMechanism:
    """The mechanism in the bytes of a file, every ratio verified.

    Raises:
        InvalidFile: the bytes are damaged, altered or too many.
        GuaranteeViolated: the weights do not keep the guaranteed epsilon.

    >>> pg.device.decode(b"privacygames device 1")
    Traceback (most recent call last):
    privacygames.errors.InvalidFile: the file ends too early
    """
    if len(content) > MOST_BYTES:
        raise InvalidFile(f"the file has more than {MOST_BYTES} bytes")
    if len(content) < DIGEST_BYTES:
        raise InvalidFile("the file ends too early")
    body = content[:-DIGEST_BYTES]
    digest = sha256(body)
    if digest.digest() != content[-DIGEST_BYTES:]:
        raise InvalidFile("the digest does not match: the file was damaged or altered")
    with well_formed("the content of the file"):
        return _Decoder(ByteReader(body), digest.hexdigest(), len(content)).decode()


def _require_ordinary(value: float, name: str) -> None:
    if not SMALLEST <= value <= LARGEST:
        raise InvalidProblem(f"{name} must be between {SMALLEST:g} and {LARGEST:g} in a file for a device: rescale it")


def _write_heading(writer: ByteWriter, kind: str, bits: int, epsilon: float, unit: str) -> None:
    writer.u8(KINDS.index(kind))
    writer.u8(bits)
    writer.numbers(epsilon)
    writer.text(unit)


def _write_finite(writer: ByteWriter, mechanism: Mechanism | PublicMechanism, epsilon: float) -> None:
    secrets, observables = mechanism.secrets, mechanism.observables
    if len(secrets) > MOST_SECRETS or len(observables) > MOST_OUTPUTS:
        raise TooLarge(f"a device takes at most {MOST_SECRETS} secrets and {MOST_OUTPUTS} outputs")
    scale = measure_scale(mechanism.distinguishability, secrets)
    kind = "grid" if isinstance(secrets, Grid) else KINDS[_label_form(secrets)]
    _write_heading(writer, kind, mechanism.bits, epsilon, scale.unit)
    if isinstance(secrets, Grid):
        writer.u32(secrets.columns)
        writer.u32(secrets.rows)
        _write_rectangle(writer, secrets.width, secrets.height, secrets.box)
    else:
        _write_labels(writer, secrets)
    _write_outputs(writer, secrets, observables)
    _write_distances(writer, mechanism, scale.unit)


def _write_rectangle(writer: ByteWriter, width: float, height: float, box: Box | None) -> None:
    for length in (width, height):
        _require_ordinary(length, "the size of the area")
    writer.numbers(width, height)
    writer.u8(int(box is not None))
    writer.numbers(*(box or ()))


def _label_form(space: Space) -> int:
    """What the labels of a space are, all of them: numbers, texts or sets."""
    for form, kinds in ((NUMBERS, (int, float)), (TEXTS, (str,)), (SETS, (frozenset,))):
        if all(isinstance(label, kinds) for label in space.labels):
            return form
    raise InvalidProblem("a file for a device has labels that are all numbers, all texts or all sets")


def _write_labels(writer: ByteWriter, space: Space) -> None:
    form = _label_form(space)
    writer.u32(len(space))
    if form == NUMBERS:
        writer.numbers(*cast("tuple[float, ...]", space.labels))
    for label in space.labels if form != NUMBERS else ():
        members = sorted(label, key=_code_units) if isinstance(label, frozenset) else [str(label)]
        if len(members) > MOST_MEMBERS or any(len(member.encode()) > MOST_TEXT_BYTES for member in members):
            raise TooLarge(f"a device takes texts of up to {MOST_TEXT_BYTES} bytes, and sets of up to {MOST_MEMBERS}")
        if form == SETS:
            writer.u16(len(members))
        for member in members:
            writer.text(member)


def _code_units(text: str) -> bytes:
    """The order of texts in JavaScript."""
    return text.encode("utf-16-be")


def _write_outputs(writer: ByteWriter, secrets: Space, observables: Space) -> None:
    if observables == secrets:
        writer.u8(SAME_AS_SECRETS)
        return
    places = _places(observables, secrets.box is not None) if isinstance(secrets, Grid) else None
    if places is None:
        writer.u8(_label_form(observables))
        _write_labels(writer, observables)
    else:
        writer.u8(PLACES)
        _write_places(writer, places)


def _write_places(writer: ByteWriter, places: FloatArray) -> None:
    writer.u32(len(places))
    writer.numbers(*places.ravel().tolist())


def _places(observables: Space, degrees: bool) -> FloatArray | None:
    """The outputs of a grid or area as coordinates in its degrees or kilometres; None where they are no places."""
    if isinstance(observables, Subsets) and isinstance(observables.underlying, Grid):
        cells = _places(observables.underlying, degrees)
        return None if cells is None else np.array([cells[members].mean(axis=0) for members in observables.members])
    if isinstance(observables, Grid) and (observables.box is not None) == degrees:
        return observables.degrees if degrees else observables.centres
    if isinstance(observables, Places) and observables.degrees == degrees:
        return observables.points
    return None


def _write_distances(writer: ByteWriter, mechanism: Mechanism | PublicMechanism, unit: str) -> None:
    within = mechanism.bounds.within
    writer.u8(int(within is not None))
    if within is not None:
        writer.numbers(within)
    values, positions = np.unique(mechanism.distinguishability, return_inverse=True)
    for value in values[(values > 0) & (values < np.inf)][[0, -1]].tolist() if len(values) > 1 else ():
        _require_ordinary(value, "distances")
    writer.u8(int(_are_of_space(mechanism.secrets, mechanism.distinguishability, unit)))
    writer.u32(len(values))
    writer.numbers(*values.tolist())
    writer.array(positions, _position_type(len(values)))


def _position_type(count: int) -> str:
    return "<u1" if count <= 2**8 else "<u2" if count <= 2**16 else "<u4"


def _are_of_space(secrets: Space, distances: FloatArray, unit: str) -> bool:
    """Whether distances are at most those between the cells' centres, or between the numbers."""
    if isinstance(secrets, Grid):
        if unit != "km":
            return False
        if secrets.box is not None:
            west, south, east, north = secrets.box
            middle = np.radians((south + north) / 2)
            wide = EARTH_RADIUS_KM * np.radians(east - west) * np.cos(middle)
            high = EARTH_RADIUS_KM * np.radians(north - south)
            most = np.array([wide, high]) * (1 + SAME_DISTANCE)
            if not (secrets.width <= most[0] and secrets.height <= most[1]):
                return False
        own = secrets.distance("euclidean")
    elif isinstance(secrets, Numbers):
        own = secrets.distance("absolute")
    else:
        return False
    return bool((distances <= own * (1 + SAME_DISTANCE)).all())


def _write_points(writer: ByteWriter, mechanism: PublicPointMechanism, epsilon: float) -> None:
    mesh, region = mechanism.mesh, mechanism.secrets
    if len(mechanism.observables) > MOST_OUTPUTS:
        raise TooLarge(f"a device takes at most {MOST_OUTPUTS} outputs")
    _write_heading(writer, "points", mechanism.bits, epsilon, region.unit)
    if isinstance(region, Interval):
        writer.u8(1)
        for end in (region.low, region.high):
            if abs(end) > LARGEST:
                _require_ordinary(abs(end), "the ends of the interval")
        writer.numbers(region.low, region.high)
    else:
        area = cast("Area", region)
        writer.u8(0)
        _write_rectangle(writer, area.width, area.height, area.box)
    writer.u8(mesh.degree)
    for lines in mesh.lines:
        writer.u32(len(lines))
        writer.numbers(*lines.tolist())
    cells = mesh.tree.cells if mesh.tree.depth else np.zeros((0, 1 + mesh.axes), dtype=np.int64)
    writer.u32(len(cells))
    for level, *position in cells.tolist():
        writer.u8(level)
        for at in position:
            writer.u32(at)
    if isinstance(region, Interval):
        _write_labels(writer, mechanism.observables)
    else:
        places = _places(mechanism.observables, cast("Area", region).box is not None)
        if places is None:
            raise InvalidProblem("the outputs of an area must be places or a grid")
        _write_places(writer, places)


class _Decoder:
    """Reads one file."""

    def __init__(self, reader: ByteReader, digest: str, size: int) -> None:
        self._reader, self._digest, self._size = reader, digest, size

    def decode(self) -> DeviceMechanism:
        """The mechanism, verified."""
        reader = self._reader
        if reader.line(MOST_LINE_BYTES) != FIRST_LINE:
            raise InvalidFile("this is no mechanism for devices, or of another version of the format")
        disclosure = DISCLOSURES.get(reader.line(MOST_LINE_BYTES))
        if disclosure is None:
            raise InvalidFile("the disclosure is not valid")
        kind, bits = KINDS[reader.choice(len(KINDS))], reader.u8()
        if not 52 <= bits <= 62:
            raise InvalidFile("the number of bits is out of range")
        epsilon, unit = reader.number(SMALLEST, LARGEST), reader.text()
        if len(unit) > MOST_UNIT_LENGTH:
            raise InvalidFile("the unit is too long")
        heading = {"kind": kind, "digest": self._digest, "disclosure": disclosure, "epsilon": epsilon, "unit": unit}
        heading |= {"size": self._size, "bits": bits}
        if kind == "points":
            return self._points(heading, epsilon, unit, bits)
        return self._finite(heading, kind, epsilon, unit, bits)

    def _finite(self, heading: dict[str, Any], kind: str, epsilon: float, unit: str, bits: int) -> DeviceMechanism:
        secrets = self._grid() if kind == "grid" else self._labels(KINDS.index(kind), MOST_SECRETS)
        outputs = self._outputs(secrets)
        within, of_space, values, positions = self._distances(len(secrets))
        weights = self._weights(len(secrets), len(outputs), bits)
        self._reader.end()
        if of_space and not _are_of_space(secrets, values[positions], unit):
            raise InvalidFile("the distances are not those of the secrets")
        check_ratios(weights, epsilon, values, positions, within)
        return DeviceMechanism(**heading, within=within, secrets=secrets, points=None, outputs=outputs, weights=weights)

    def _points(self, heading: dict[str, Any], epsilon: float, unit: str, bits: int) -> DeviceMechanism:
        region = self._region(unit)
        mesh = self._mesh(region)
        observables: Space
        if isinstance(region, Interval):
            observables = self._labels(NUMBERS, MOST_OUTPUTS)
            outputs = tuple(DeviceOutput(index, label, None) for index, label in enumerate(observables.labels))
        else:
            degrees = cast("Area", region).box is not None
            places = self._places(degrees)
            observables = Places(places, labels=map(str, range(len(places))), degrees=degrees)
            outputs = tuple(DeviceOutput(index, None, place) for index, place in enumerate(places))
        weights = self._weights(mesh.controls, len(outputs), bits)
        self._reader.end()
        mechanism = PublicPointMechanism(PointTable(mesh, observables, weights, bits), epsilon)
        return DeviceMechanism(**heading, within=None, secrets=None, points=mechanism, outputs=outputs, weights=weights)

    def _finite_number(self, limit: float) -> float:
        return self._reader.number(-limit, limit)

    def _rectangle(self) -> tuple[float, float, Box | None]:
        reader = self._reader
        width, height = (reader.number(SMALLEST, LARGEST) for _ in range(2))
        if reader.choice(2) == 0:
            return width, height, None
        west, south, east, north = (self._finite_number(limit) for limit in (180.0, 90.0, 180.0, 90.0))
        if not (west < east and south < north):
            raise InvalidFile("the box is none")
        return width, height, (west, south, east, north)

    def _grid(self) -> Grid:
        columns, rows = (self._reader.count(MOST_SECRETS) for _ in range(2))
        if columns * rows > MOST_SECRETS:
            raise InvalidFile("there are too many cells")
        width, height, box = self._rectangle()
        return Grid(columns, rows, width, height, box=box)

    def _labels(self, form: int, most: int) -> Space:
        reader = self._reader
        count = reader.count(most)
        if form == NUMBERS:
            values = [self._finite_number(MOST_NUMBER) for _ in range(count)]
            return Numbers([int(value) if value.is_integer() else value for value in values])
        if form == TEXTS:
            return Categories([reader.text() for _ in range(count)])
        return Sets([self._set() for _ in range(count)])

    def _set(self) -> list[str]:
        count = self._reader.u16()
        if count > MOST_MEMBERS:
            raise InvalidFile("a set is too large")
        members = [self._reader.text() for _ in range(count)]
        order = [_code_units(member) for member in members]
        if any(not before < after for before, after in pairwise(order)):
            raise InvalidFile("the members of a set are not in order")
        return members

    def _places(self, degrees: bool) -> list[tuple[float, float]]:
        limits = (180.0, 90.0) if degrees else (LARGEST, LARGEST)
        count = self._reader.count(MOST_OUTPUTS)
        return [(self._finite_number(limits[0]), self._finite_number(limits[1])) for _ in range(count)]

    def _outputs(self, secrets: Space) -> tuple[DeviceOutput, ...]:
        form = self._reader.choice(5)
        if form == PLACES:
            if not isinstance(secrets, Grid):
                raise InvalidFile("only secrets that are places have outputs that are places")
            places = self._places(secrets.box is not None)
            return tuple(DeviceOutput(index, None, place) for index, place in enumerate(places))
        space = secrets if form == SAME_AS_SECRETS else self._labels(form, MOST_OUTPUTS)
        centres = _centres(secrets) if form == SAME_AS_SECRETS and isinstance(secrets, Grid) else [None] * len(space)
        return tuple(DeviceOutput(*each) for each in zip(range(len(space)), space.labels, centres, strict=True))

    def _distances(self, size: int) -> tuple[float | None, bool, FloatArray, IntArray]:
        reader = self._reader
        within = reader.number(0.0, LARGEST) if reader.choice(2) else None
        of_space = bool(reader.choice(2))
        values = np.frombuffer(reader.take(8 * reader.count(size * size)), dtype="<f8").astype(np.float64)
        ordinary = (values >= SMALLEST) & (values <= LARGEST)
        ordinary[0] |= values[0] == 0 and not np.signbit(values[0])
        ordinary[-1] |= values[-1] == np.inf
        if not ordinary.all() or not (values[:-1] < values[1:]).all():
            raise InvalidFile("the distances are not in order")
        kind = np.dtype(_position_type(len(values)))
        positions = np.frombuffer(reader.take(kind.itemsize * size * size), dtype=kind).reshape(size, size)
        if int(positions.max()) >= len(values):
            raise InvalidFile("a distance is none of those listed")
        if values[np.diagonal(positions)].any():
            raise InvalidFile("a secret is not at distance 0 of itself")
        return within, of_space, values, positions.astype(np.int64)

    def _region(self, unit: str) -> Region:
        if self._reader.choice(2) == 1:
            low, high = (self._finite_number(LARGEST) for _ in range(2))
            return Interval(low, high, unit="")
        width, height, box = self._rectangle()
        if unit != "km":
            raise InvalidFile("the points of an area have distances in km")
        return Area(width, height) if box is None else Area.over(box).with_lengths(width, height)

    def _mesh(self, region: Region) -> Mesh:
        reader = self._reader
        degree = reader.u8()
        if not 1 <= degree <= HIGHEST_DEGREE:
            raise InvalidFile("the degree of the mesh is out of range")
        lines = [
            np.array([reader.number(0.0, length) for _ in range(reader.count(MOST_CONTROLS + 1, 2))])
            for length in region.lengths
        ]
        if any(axis[0] != 0 or axis[-1] != length for axis, length in zip(lines, region.lengths, strict=True)):
            raise InvalidFile("the mesh does not fit its region")
        if any((np.diff(axis) <= 0).any() for axis in lines):
            raise InvalidFile("a cell of the mesh is too thin")
        count = reader.count(2 * MOST_CONTROLS, 0)
        if not count:
            return Mesh.from_lines(region, *lines, degree=degree)
        if count * degree ** len(lines) > 2 * MOST_CONTROLS:
            raise InvalidFile("the mesh is too large")
        cells = np.array([self._cell([len(axis) - 1 for axis in lines]) for _ in range(count)], dtype=np.int64)
        mesh = Mesh.from_lines(region, *lines, degree=degree, cells=cells)
        if not mesh.tree.depth or not np.array_equal(mesh.tree.cells, cells):
            raise InvalidFile("the cells of the mesh are not in order, or none is halved")
        return mesh

    def _cell(self, counts: list[int]) -> list[int]:
        level = self._reader.choice(MOST_LEVELS + 1)
        return [level, *(self._reader.count((count << level) - 1, 0) for count in counts)]

    def _weights(self, rows: int, columns: int, bits: int) -> IntArray:
        if rows * columns > MOST_WEIGHTS:
            raise InvalidFile("there are too many weights")
        given = np.frombuffer(self._reader.take(8 * rows * columns), dtype="<u8").reshape(rows, columns)
        low = (given & np.uint64(2**32 - 1)).sum(axis=1, dtype=np.uint64).tolist()
        high = (given >> np.uint64(32)).sum(axis=1, dtype=np.uint64).tolist()
        if any((a << 32) + b != 1 << bits for a, b in zip(high, low, strict=True)):
            raise InvalidFile("a row of weights does not sum to the power of two given")
        return freeze(given.astype(np.int64))


def _centres(grid: Grid) -> list[tuple[float, float]]:
    """The centres of cells as a device computes them, in degrees or kilometres."""
    west, south, east, north = grid.box or (0.0, 0.0, grid.width, grid.height)
    return [
        (west + (east - west) * (column + 0.5) / grid.columns, south + (north - south) * (row + 0.5) / grid.rows)
        for row in range(grid.rows)
        for column in range(grid.columns)
    ]
