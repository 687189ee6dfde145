"""Disclosure: what an exported file reveals about the data that its prior was estimated from."""

from enum import Enum


class Disclosure(Enum):
    """What a file reveals about a user's data; every exported file states it, in its name or its first lines.

    >>> from privacygames.mechanism import Disclosure
    >>> Disclosure.COMPUTED.is_private, Disclosure.SHAREABLE.is_private
    (True, False)
    """

    PRIOR = "private: contains the prior"
    COMPUTED = "private: computed from the prior"
    SHAREABLE = "shareable: nothing in it depends on the prior, or on visits beyond the public lattice"

    @property
    def is_private(self) -> bool:
        """Whether the file must not be shared with everybody."""
        return self is not Disclosure.SHAREABLE

    @property
    def comment(self) -> str:
        """The disclosure as a comment: the first line of a TOML file or a Python program."""
        return f"# {self.value}\n"
