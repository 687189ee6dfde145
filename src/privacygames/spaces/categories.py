"""Categories: diagnoses, occupations, answers; any two different ones are equally far apart."""

from privacygames.spaces.space import Space


class Categories(Space):
    """Distinct labels with nothing but equality between them (the Hamming distance)."""
