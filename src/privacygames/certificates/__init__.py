"""What is promised, and how it is checked: statement, verifier, bound on the optimum, repair. Knows no solver."""

from privacygames.certificates.allowed import allowed_outputs
from privacygames.certificates.certificate import AdversaryResult, Certificate, Provenance
from privacygames.certificates.multipliers import AdversaryMultipliers, Multipliers, RatioMultipliers
from privacygames.certificates.realised import ROUNDING, largest_log_ratio, realised_epsilon
from privacygames.certificates.repair import least_mixture, repair, to_weights
from privacygames.certificates.stake import NEGLIGIBLE, at_stake, moderate_loss, stake
from privacygames.certificates.statement import BITS, ContentHashes, Statement, check_form
from privacygames.certificates.usefulness import MOST_KINDS, Usefulness, usefulness
from privacygames.certificates.verifier import Verification, check, distortion_below, probabilities

__all__ = [
    "BITS",
    "MOST_KINDS",
    "NEGLIGIBLE",
    "ROUNDING",
    "AdversaryMultipliers",
    "AdversaryResult",
    "Certificate",
    "ContentHashes",
    "Multipliers",
    "Provenance",
    "RatioMultipliers",
    "Statement",
    "Usefulness",
    "Verification",
    "allowed_outputs",
    "at_stake",
    "check",
    "check_form",
    "distortion_below",
    "largest_log_ratio",
    "least_mixture",
    "moderate_loss",
    "probabilities",
    "realised_epsilon",
    "repair",
    "stake",
    "to_weights",
    "usefulness",
]
