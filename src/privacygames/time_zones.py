"""Time zones by name."""

from datetime import UTC, tzinfo

from privacygames.errors import InvalidProblem


def time_zone(name: str) -> tzinfo:
    """The time zone with this name in the IANA database."""
    if isinstance(name, str) and name == "UTC":  # defined even where there is no database
        return UTC
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError, TypeError):
        raise InvalidProblem(
            f"there is no time zone {repr(name)[:40]}; give a name such as 'UTC', 'Europe/Zurich' or 'Asia/Kolkata' "
            "(where no zone is found at all, install the tzdata package)"
        ) from None
