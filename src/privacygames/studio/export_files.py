"""What can be taken out of the studio: for each export its file name and its disclosure, which the name says, too."""

from dataclasses import dataclass

from privacygames.mechanism import Disclosure


@dataclass(frozen=True)
class ExportFile:
    """One export.

    Attributes:
        stem: the name of the file, without the word that says whether it is private.
        disclosure: what the file says about the user's data.
    """

    stem: str
    disclosure: Disclosure

    @property
    def name(self) -> str:
        """The file name, such as ``"private-mechanism.pgm"``."""
        return f"{'private' if self.disclosure.is_private else 'shareable'}-{self.stem}"

    def to_dict(self) -> dict[str, str]:
        """Plain values, for JSON."""
        return {"name": self.name, "disclosure": self.disclosure.value}


EXPORTS = {
    "file": ExportFile("mechanism.pgm", Disclosure.PRIOR),
    "certificate": ExportFile("certificate.json", Disclosure.COMPUTED),
    "toml": ExportFile("problem.toml", Disclosure.PRIOR),
    "python": ExportFile("make_again.py", Disclosure.PRIOR),
    "report": ExportFile("report.html", Disclosure.COMPUTED),
    "report-with-counts": ExportFile("report.html", Disclosure.PRIOR),
    "svg": ExportFile("picture.svg", Disclosure.PRIOR),
    "png": ExportFile("picture.png", Disclosure.PRIOR),
    "shareable-toml": ExportFile("problem.toml", Disclosure.SHAREABLE),
    "shareable-report": ExportFile("report.html", Disclosure.SHAREABLE),
}
"""Every export by its key. Pictures show the prior, or what follows from it for one secret or answer."""
