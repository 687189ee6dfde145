"""Categories: diagnoses, occupations, answers to a question; any two different ones are equally far apart."""

from privacygames.spaces.space import Space


class Categories(Space):
    """Distinct labels without structure: the Hamming distance is 1 between any two.

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> illnesses.distance("hamming")[0].tolist()
    [0.0, 1.0, 1.0]
    """
