"""Replays: days of real or synthetic people, released under several policies at one daily budget, and attacked.

``learn_days`` learns a prior and a Markov model from each person's earlier days; ``replay`` releases the later days
under each strategy and measures the tracking attacks on the outputs.
"""

from privacygames.policy_comparison import PersonDays, learn_days
from privacygames_study.replays import plots
from privacygames_study.replays.runner import ReplayResult, replay
from privacygames_study.replays.strategies import STRATEGIES

__all__ = ["STRATEGIES", "PersonDays", "ReplayResult", "learn_days", "plots", "replay"]
