"""Mechanism files of every kind: reading them, with every guarantee verified.

A file holds a mechanism for cells or labels, or one for points; each with its prior and cost, or without. The package
of mechanisms for points is imported only for such a file, so that verifying any other file loads no solver.
"""

import os
from typing import TYPE_CHECKING, Any, TypeVar, overload

from privacygames.certificates import Certificate
from privacygames.errors import InvalidFile, InvalidProblem, TooLarge
from privacygames.mechanism import (
    POINTS_KIND,
    Arrays,
    Header,
    Mechanism,
    PublicMechanism,
    parse_container,
    read_container,
)

if TYPE_CHECKING:
    from privacygames.points import PointCertificate, PointMechanism, PublicPointMechanism

Kind = TypeVar("Kind")
"""The class of a mechanism."""

ONLY_LABELS = (
    "this mechanism is for points, whose coordinates are the secrets; what is asked for here works with mechanisms for "
    "cells or labels only"
)


@overload
def load(path: str | os.PathLike[str]) -> Mechanism: ...
@overload
def load(path: str | os.PathLike[str], kind: type[Kind]) -> Kind: ...
def load(path: str | os.PathLike[str], kind: type[Any] = Mechanism) -> Any:
    """Read a mechanism file, and verify every guarantee in it.

    >>> mechanism = pg.baselines.exponential(pg.Problem(pg.Prior.uniform(pg.Numbers([1, 2, 3]))), epsilon=0.5)
    >>> mechanism.save("numbers.pgm")
    >>> pg.load("numbers.pgm").digest == mechanism.digest
    True

    Args:
        path: the file.
        kind: what it holds: a :class:`privacygames.Mechanism`, or a :class:`privacygames.PointMechanism` where the
            secrets are points.

    Raises:
        InvalidProblem: it holds a mechanism of another kind.
        InvalidFile: the file is damaged, altered, too large or of another version.
        GuaranteeViolated: the mechanism in the file does not keep its guarantees.
    """
    return _require_kind(load_certified(path), kind)


def load_certified(path: str | os.PathLike[str]) -> "Mechanism | PointMechanism":
    """Read a mechanism file of either kind with prior and cost, as :func:`load` does.

    >>> from privacygames.mechanism_files import load_certified
    >>> pg.baselines.identity(pg.Problem(pg.Prior.uniform(pg.Numbers([20, 30])))).save("numbers.pgm")
    >>> type(load_certified("numbers.pgm")).__name__
    'Mechanism'
    """
    return _with_prior(*read_container(path))


def load_bytes(content: bytes, *, max_size: int | None = None) -> "Mechanism | PointMechanism":
    """Read the bytes of a mechanism file, and verify every guarantee in it.

    >>> from privacygames.mechanism_files import load_bytes
    >>> mechanism = pg.baselines.exponential(pg.Problem(pg.Prior.uniform(pg.Numbers([1, 2, 3]))), epsilon=0.5)
    >>> load_bytes(mechanism.to_bytes()).digest == mechanism.digest
    True

    Args:
        content: the bytes.
        max_size: largest number of rows and of columns of a matrix in it; larger files are refused before anything is
            computed.
    """
    header, arrays = parse_container(content)
    matrices = [array for array in arrays.values() if array.ndim == 2]
    if max_size is not None and any(max(matrix.shape) > max_size for matrix in matrices):
        raise TooLarge(
            f"the file has a table of more than {max_size} rows or columns; at most {max_size} are taken here"
        )
    return _with_prior(header, arrays)


@overload
def load_public(path: str | os.PathLike[str]) -> PublicMechanism: ...
@overload
def load_public(path: str | os.PathLike[str], kind: type[Kind]) -> Kind: ...
def load_public(path: str | os.PathLike[str], kind: type[Any] = PublicMechanism) -> Any:
    """Read a file without prior and cost, and verify the ε that it guarantees.

    >>> mechanism = pg.baselines.exponential(pg.Problem(pg.Prior.uniform(pg.Numbers([1, 2, 3]))), epsilon=0.5)
    >>> pg.PublicMechanism.of(mechanism).save("public.pgm")
    >>> pg.load_public("public.pgm").bounds.epsilon == mechanism.bounds.epsilon
    True

    Args:
        path: the file.
        kind: what it holds: a :class:`privacygames.PublicMechanism`, or
            :class:`privacygames.points.PublicPointMechanism` where the secrets are points.

    Raises:
        InvalidProblem: it holds a mechanism of another kind.
        InvalidFile: the file is damaged, altered, or holds prior and cost.
        GuaranteeViolated: the weights do not keep the guaranteed ε.
    """
    header, arrays = read_container(path)
    if "withheld" not in header:
        raise InvalidFile("this file has prior and cost in it: read it with load")
    return _require_kind(_without_prior(header, arrays), kind)


def load_any(
    path: str | os.PathLike[str],
) -> "Mechanism | PointMechanism | PublicMechanism | PublicPointMechanism":
    """Read a mechanism file with prior and cost, as :func:`load` does, or without, as :func:`load_public` does.

    >>> from privacygames.mechanism_files import load_any
    >>> mechanism = pg.baselines.exponential(pg.Problem(pg.Prior.uniform(pg.Numbers([1, 2, 3]))), epsilon=0.5)
    >>> pg.PublicMechanism.of(mechanism).save("public.pgm")
    >>> type(load_any("public.pgm")).__name__
    'PublicMechanism'
    """
    header, arrays = read_container(path)
    return _without_prior(header, arrays) if "withheld" in header else _with_prior(header, arrays)


def load_finite(path: str | os.PathLike[str]) -> Mechanism:
    """Read the file of a mechanism for cells or labels; one for points is refused with a sentence of its own.

    >>> from privacygames.mechanism_files import load_finite
    >>> pg.baselines.identity(pg.Problem(pg.Prior.uniform(pg.Numbers([20, 30])))).save("numbers.pgm")
    >>> load_finite("numbers.pgm").sample(30)
    30
    """
    return finite_mechanism(load_certified(path))


def finite_mechanism(mechanism: "Mechanism | PointMechanism") -> Mechanism:
    """The mechanism itself, if its secrets are cells or labels; one for points is refused.

    >>> from privacygames.mechanism_files import finite_mechanism
    >>> mechanism = pg.baselines.identity(pg.Problem(pg.Prior.uniform(pg.Numbers([20, 30]))))
    >>> finite_mechanism(mechanism) is mechanism
    True
    """
    if not isinstance(mechanism, Mechanism):
        raise InvalidProblem(ONLY_LABELS)
    return mechanism


def verify(path: str | os.PathLike[str]) -> "Certificate | PointCertificate":
    """Verify every guarantee in a mechanism file, and return its certificate.

    >>> mechanism = pg.baselines.exponential(pg.Problem(pg.Prior.uniform(pg.Numbers([1, 2, 3]))), epsilon=0.5)
    >>> mechanism.save("to-verify.pgm")
    >>> pg.verify("to-verify.pgm").verification.largest_ratio <= 1
    True

    Raises:
        InvalidFile: the file is damaged, altered, too large or of another version.
        GuaranteeViolated: the mechanism in the file does not keep its guarantees.
    """
    return load_certified(path).certificate


def _require_kind(mechanism: object, kind: type[Kind]) -> Kind:
    """The mechanism, if it is of this kind."""
    if isinstance(mechanism, kind):
        return mechanism
    given = type(mechanism).__name__
    package = "pg.points" if given == "PublicPointMechanism" else "pg"
    raise InvalidProblem(f"the file holds a {given}, not a {kind.__name__}: pass {package}.{given} after the path")


def _with_prior(header: Header, arrays: Arrays) -> "Mechanism | PointMechanism":
    if "withheld" in header:
        raise InvalidFile("this file was exported without prior and cost: read it with load_public")
    if header.get("kind") != POINTS_KIND:
        return Mechanism.from_container(header, arrays)
    from privacygames.points import PointMechanism

    return PointMechanism.from_container(header, arrays)


def _without_prior(header: Header, arrays: Arrays) -> "PublicMechanism | PublicPointMechanism":
    if header.get("kind") != POINTS_KIND:
        return PublicMechanism.from_container(header, arrays)
    from privacygames.points import PublicPointMechanism

    return PublicPointMechanism.from_container(header, arrays)
