"""The ledgers of the person whose machine this is: a folder for each, which holds no secret but what they put there."""

import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from time import time
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, ValidationError, model_validator

from privacygames.atomic_io import fsync_directory, write_bytes
from privacygames.beliefs import Mobility
from privacygames.errors import InvalidFile, InvalidProblem
from privacygames.mechanism import Mechanism, PublicMechanism
from privacygames.mechanism_files import load_bytes
from privacygames.points import PointMechanism
from privacygames.releases import Budget, FrequentPlaces, Memoised, PointReleases, Preview, Releases
from privacygames.spaces import Grid
from privacygames.studio.desktop import data_directory
from privacygames.studio.http_errors import Refused
from privacygames.studio.positions import point_inside, secret_of
from privacygames.studio.requests import Body, PlanePointBody, PositionBody, SecretBody

DAY = 24 * 3600.0
"""Seconds of the window that a daily budget is for."""

STEP = 3600.0
"""Seconds after which a belief forgets where the person was: the ledger's ε holds for any movement."""

KEY_BYTES = 32
"""Random bytes of the key of memoised outputs."""

LEDGER, MECHANISM, SETTINGS, PAUSED = "ledger.sqlite", "mechanism.pgm", "settings.json", "paused"
"""The files of a ledger's folder; ``paused`` is there while nothing may be released."""

LedgerName = Annotated[str, Field(pattern=r"^\w([\w .\-]{0,58}[\w])?$")]
"""What a person may call a ledger: letters, digits, blanks, dots and hyphens, and so never a path."""


class DailySettings(Body):
    """The budget of any 24 hours, and the policy.

    ``fresh`` draws every output independently; ``same`` gives the same place (for points: all points of a square of
    ``place`` km) or label the same output, and charges it once; ``places`` does so for the points within ``radius`` km
    of the frequent ``places``. With ``delta``, all outputs of 24 hours together fail with at most this probability, for
    secrets at most ``within`` apart.
    """

    epsilon: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]
    delta: Annotated[float, Field(gt=0, lt=1)] | None = None
    within: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    policy: Literal["fresh", "same", "places"] = "fresh"
    place: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    places: Annotated[list[PositionBody | PlanePointBody], Field(min_length=1, max_length=50)] | None = None
    radius: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    when_spent: Literal["refuse", "repeat"] = "refuse"

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.policy == "places") != (self.places is not None and self.radius is not None):
            raise ValueError("places and a radius go together, with the policy of frequent places")
        if self.place is not None and self.policy != "same":
            raise ValueError("the size of a place goes with the policy of same places")
        if self.within is not None and self.delta is None:
            raise ValueError("within goes with delta")
        return self


class _StoredSettings(DailySettings):
    """The settings of a ledger in its folder, with the key of its memoised outputs and the charge of a new output."""

    key: Annotated[str, Field(min_length=2 * KEY_BYTES, max_length=2 * KEY_BYTES, pattern="^[0-9a-f]+$")]
    charge: Annotated[str, Field(max_length=60, pattern=r"^[0-9]+(\.[0-9]+)?(E[+-]?[0-9]+)?$")] = "0"


@dataclass(frozen=True)
class OpenLedger:
    """A ledger while one request is about it.

    Attributes:
        name: what the person calls it.
        folder: where it is.
        mechanism: the mechanism that every output is drawn from.
        settings: its budget and its policy.
        charge: what a new output is charged to the budget.
        session: its releases.
    """

    name: str
    folder: Path
    mechanism: Mechanism | PointMechanism
    settings: DailySettings
    charge: Decimal
    session: Releases | PointReleases

    @property
    def paused(self) -> bool:
        """Whether nothing may be released."""
        return (self.folder / PAUSED).exists()

    def pause(self, paused: bool) -> None:
        """Stop releases, of every process, until they are resumed."""
        if paused:
            write_bytes(self.folder / PAUSED, private=True)
        else:
            (self.folder / PAUSED).unlink(missing_ok=True)
            fsync_directory(self.folder)

    def release(self, body: SecretBody, key: str | None) -> int:
        """Draw one output, charged and committed before this returns; its number in the ledger.

        Raises:
            Refused: the ledger is paused.
            BudgetExceeded: the budget of these 24 hours has no room.
        """
        if self.paused:
            raise Refused(409, "PAUSED", "this ledger is paused, and nothing was released: resume it first")
        if isinstance(self.session, Releases):
            assert isinstance(self.mechanism, Mechanism)  # noqa: S101 - of one kind with its session
            return self.session.release(secret_of(self.mechanism, body), at=time(), key=key).number
        assert isinstance(self.mechanism, PointMechanism)  # noqa: S101
        point = point_inside(self.mechanism, body)
        return self.session.release(point if len(point) > 1 else point[0], at=time(), key=key).number


class LedgerFolder:
    """All ledgers of a person. Each request opens what it is about anew, so that other processes may use it, too.

    Args:
        folder: where they are; created, readable by its owner only, with the first of them.
        secrets: the largest number of secrets of a mechanism.

    >>> import tempfile
    >>> LedgerFolder(Path(tempfile.gettempdir()) / "nobody has this folder", secrets=400).names()
    []
    """

    def __init__(self, folder: Path, *, secrets: int) -> None:
        self.folder, self._secrets = folder, secrets

    def names(self) -> list[str]:
        """The names of the ledgers, in alphabetical order."""
        if not self.folder.is_dir():
            return []
        complete = (each.name for each in self.folder.iterdir() if (each / SETTINGS).is_file())
        return sorted(name for name in complete if not name.startswith("."))

    def create(self, name: str, mechanism: Mechanism | PointMechanism, settings: DailySettings) -> None:
        """Make a ledger, completely or not at all.

        Raises:
            Refused: there is one of that name.
            InvalidProblem: the mechanism, the budget and the policy do not go together.
        """
        if mechanism.certificate.bounds.epsilon is None:
            raise InvalidProblem(
                "what is used every day must limit how far each output shifts the odds: design with a limit of ε first"
            )
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            part = Path(tempfile.mkdtemp(prefix=".new-", dir=self.folder))  # mode 700
        except OSError as error:
            raise InvalidProblem(f"the folder of ledgers cannot be written: {error.strerror}") from None
        try:
            stored = _StoredSettings(**settings.model_dump(), key=secrets.token_hex(KEY_BYTES))
            session = _session(mechanism, stored, part / LEDGER)
            stored = stored.model_copy(update={"charge": str(_charge(session))})
            session.ledger.close()
            write_bytes(part / MECHANISM, mechanism.to_bytes(), private=True)
            write_bytes(part / SETTINGS, stored.model_dump_json(exclude_none=True).encode(), private=True)
            target = self.folder / name
            if target.exists():
                raise _taken()
            try:
                part.rename(target)
            except OSError:  # another process was faster
                raise _taken() from None
            fsync_directory(self.folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)

    @contextmanager
    def opened(self, name: str) -> Iterator[OpenLedger]:
        """A ledger, by its name.

        Raises:
            Refused: there is none of that name.
            InvalidFile: one of its files was altered.
        """
        if name not in self.names():
            raise Refused(404, "NOT_FOUND", "there is no ledger of that name here")
        folder = self.folder / name
        try:
            settings = _StoredSettings.model_validate_json((folder / SETTINGS).read_bytes())
            content = (folder / MECHANISM).read_bytes()
        except OSError as error:
            raise InvalidFile(f"a file of this ledger cannot be read: {error.strerror}") from None
        except ValidationError:
            raise InvalidFile("the settings of this ledger were altered") from None
        mechanism = load_bytes(content, max_size=self._secrets)
        if isinstance(mechanism, PublicMechanism):
            raise InvalidFile("the mechanism of this ledger was altered")
        session = _session(mechanism, settings, folder / LEDGER)
        try:
            yield OpenLedger(name, folder, mechanism, settings, Decimal(settings.charge), session)
        finally:
            session.ledger.close()


def default_folder() -> Path:
    """The folder of ledgers in the person's own data directory."""
    return data_directory() / "privacygames" / "ledgers"


def _charge(session: Releases | PointReleases) -> Decimal:
    """What a new output is charged to the budget; refused where the budget has no room for a single one."""
    preview, limit = session.preview(at=time()), session.accounts[-1].limit
    drawn = preview.choice if isinstance(preview, Preview) else preview.mechanism
    charge = preview.charges[-1]
    if drawn is None or (limit is not None and charge > limit):
        raise InvalidProblem("one output costs more than this budget has for 24 hours: allow more", field="budget")
    return charge


def _taken() -> Refused:
    return Refused(409, "EXISTS", "there is a ledger of that name already: choose another name")


def _session(
    mechanism: Mechanism | PointMechanism, settings: _StoredSettings, ledger: Path
) -> Releases | PointReleases:
    """The releases of a ledger; every output is drawn from the one mechanism."""
    budget = Budget(settings.epsilon, every=DAY, delta=settings.delta, within=settings.within)
    key = bytes.fromhex(settings.key)
    if isinstance(mechanism, PointMechanism):
        policy: FrequentPlaces | Memoised | None = None
        if settings.policy == "same":
            policy = Memoised(key, place=settings.place)
        elif settings.policy == "places":
            bodies = [SecretBody(at=place) for place in settings.places or []]
            places = [point_inside(mechanism, body) for body in bodies]  # of an area: bodies are pairs
            policy = FrequentPlaces(key, places, radius=settings.radius or 0.0)
        return PointReleases(mechanism, policy=policy, budget=budget, when_spent=settings.when_spent, ledger=ledger)
    if settings.policy == "places":
        raise InvalidProblem("frequent places are for coordinates: with cells and labels, the same place is enough")
    if settings.place is not None:
        raise InvalidProblem("cells and labels are places themselves: leave the size of a place out")
    return Releases(
        mechanism.problem,
        _mobility(mechanism),
        mechanism=mechanism,
        policy=Memoised(key) if settings.policy == "same" else None,
        budget=budget,
        when_spent=settings.when_spent,
        ledger=ledger,
    )


def _mobility(mechanism: Mechanism) -> Mobility:
    """Labels stay; cells an hour later are as before any output. What ε guarantees holds for any movement."""
    space = mechanism.secrets
    if not isinstance(space, Grid):
        return Mobility.still(space)
    return Mobility(space, np.tile(mechanism.problem.prior.probabilities, (len(space), 1)), step=STEP)
