"""What is guaranteed, and how it is checked: statement, verifier, bound on the optimum, repair. Knows no solver."""

from privacygames.certificates.allowed import allowed_outputs
from privacygames.certificates.certificate import AdversaryResult, Certificate, Provenance
from privacygames.certificates.dual_solution import AdversaryDuals, DualSolution, RatioDuals
from privacygames.certificates.exponentials import rough_enclosure
from privacygames.certificates.loss_scale import NEGLIGIBLE, loss_scale, moderate_loss, objective_scale
from privacygames.certificates.realised import ROUNDING, largest_log_ratio, log_ratios, realised_epsilon
from privacygames.certificates.repair import least_mixture, repair, to_weights
from privacygames.certificates.statement import BITS, ContentHashes, RatioStatement, Statement, check_form
from privacygames.certificates.usefulness import MOST_KINDS, Usefulness, usefulness
from privacygames.certificates.verifier import (
    Verification,
    check,
    check_ratios,
    distortion_below,
    probabilities,
    proved_bound,
)

__all__ = [
    "BITS",
    "MOST_KINDS",
    "NEGLIGIBLE",
    "ROUNDING",
    "AdversaryDuals",
    "AdversaryResult",
    "Certificate",
    "ContentHashes",
    "DualSolution",
    "Provenance",
    "RatioDuals",
    "RatioStatement",
    "Statement",
    "Usefulness",
    "Verification",
    "allowed_outputs",
    "check",
    "check_form",
    "check_ratios",
    "distortion_below",
    "largest_log_ratio",
    "least_mixture",
    "log_ratios",
    "loss_scale",
    "moderate_loss",
    "objective_scale",
    "probabilities",
    "proved_bound",
    "realised_epsilon",
    "repair",
    "rough_enclosure",
    "to_weights",
    "usefulness",
]
