"""Disclosure: what an exported file says about the places or values that its prior was estimated from."""

from enum import Enum


class Disclosure(Enum):
    """What a file says about a user's data; every export carries one, in its name or its first lines."""

    PRIOR = "private: contains the prior"
    COMPUTED = "private: computed from the prior"
    SHAREABLE = "shareable: nothing in it depends on the prior, or on visits beyond the public lattice"

    @property
    def is_private(self) -> bool:
        """Whether the file is for the user alone."""
        return self is not Disclosure.SHAREABLE

    @property
    def comment(self) -> str:
        """The first line of a TOML file or a Python program."""
        return f"# {self.value}\n"
