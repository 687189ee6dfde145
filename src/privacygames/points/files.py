"""Files of mechanisms for points: reading, with every guarantee verified."""

import os

from privacygames.errors import InvalidFile, TooLarge
from privacygames.mechanism import Arrays, Header, parse_container, read_container
from privacygames.points.certificate import PointCertificate
from privacygames.points.content import KIND
from privacygames.points.mechanism import PointMechanism, PublicPointMechanism, decode_mechanism, decode_public


def load(path: str | os.PathLike[str]) -> PointMechanism:
    """Read the file of a mechanism for points, and verify every guarantee in it.

    >>> problem = pg.PointProblem(pg.PointPrior(pg.Interval(0.0, 4.0), [1.0, 3.0]), [1.0, 2.0, 3.0])
    >>> mechanism = pg.design(problem, epsilon=0.5)
    >>> mechanism.save("points.pgm")
    >>> pg.points.load("points.pgm").digest == mechanism.digest
    True

    Raises:
        InvalidFile: the file is damaged, altered, too large, of another version or of another kind of mechanism.
        GuaranteeViolated: the mechanism in the file does not keep its guarantees.
    """
    return decode_mechanism(*_require_points(*read_container(path)))


def load_bytes(content: bytes, *, max_size: int | None = None) -> PointMechanism:
    """Read the bytes of the file of a mechanism for points, and verify every guarantee in it.

    >>> problem = pg.PointProblem(pg.PointPrior(pg.Interval(0.0, 4.0), [1.0, 3.0]), [1.0, 2.0, 3.0])
    >>> mechanism = pg.design(problem, epsilon=0.5)
    >>> pg.points.load_bytes(mechanism.to_bytes()).digest == mechanism.digest
    True

    Args:
        content: the bytes.
        max_size: largest number of rows and of columns of a matrix in it; larger files are refused.
    """
    header, arrays = parse_container(content)
    if max_size is not None and any(max(array.shape) > max_size for array in arrays.values() if array.ndim == 2):
        raise TooLarge(f"the file has a table of more than {max_size} rows or columns")
    return decode_mechanism(*_require_points(header, arrays))


def load_public(path: str | os.PathLike[str]) -> PublicPointMechanism:
    """Read a file of a mechanism for points without prior and cost, and verify its epsilon.

    >>> problem = pg.PointProblem(pg.PointPrior(pg.Interval(0.0, 4.0), [1.0, 3.0]), [1.0, 2.0, 3.0])
    >>> pg.points.PublicPointMechanism.of(pg.design(problem, epsilon=0.5)).save("public-points.pgm")
    >>> pg.points.load_public("public-points.pgm").bounds.epsilon
    0.5

    Raises:
        InvalidFile: the file is damaged, altered, or of another kind.
        GuaranteeViolated: the weights do not keep the guaranteed ε.
    """
    return decode_public(*_require_points(*read_container(path)))


def verify(path: str | os.PathLike[str]) -> PointCertificate:
    """Verify every guarantee in the file of a mechanism for points, and return its certificate.

    >>> problem = pg.PointProblem(pg.PointPrior(pg.Interval(0.0, 4.0), [1.0, 3.0]), [1.0, 2.0, 3.0])
    >>> pg.design(problem, epsilon=0.5).save("points.pgm")
    >>> pg.points.verify("points.pgm").bounds.epsilon
    0.5
    """
    return load(path).certificate


def is_point_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file holds a mechanism for points.

    >>> problem = pg.PointProblem(pg.PointPrior(pg.Interval(0.0, 4.0), [1.0, 3.0]), [1.0, 2.0, 3.0])
    >>> pg.design(problem, epsilon=0.5).save("points.pgm")
    >>> pg.points.is_point_file("points.pgm")
    True
    """
    return bool(read_container(path)[0].get("kind") == KIND)


def _require_points(header: Header, arrays: Arrays) -> tuple[Header, Arrays]:
    if header.get("kind") != KIND:
        raise InvalidFile("this file holds a mechanism for cells or labels: read it with privacygames.load")
    return header, arrays
