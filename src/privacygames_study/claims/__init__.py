"""The claims of the paper's evaluation, and what the tables of a study say about each."""

from privacygames_study.claims.evidence import Evidence, summary, three_digits
from privacygames_study.claims.statements import CLAIM_COLUMNS, CLAIMS, OURS, READINGS, Claim, check_claims

__all__ = [
    "CLAIMS",
    "CLAIM_COLUMNS",
    "OURS",
    "READINGS",
    "Claim",
    "Evidence",
    "check_claims",
    "summary",
    "three_digits",
]
