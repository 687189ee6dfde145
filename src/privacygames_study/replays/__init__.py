"""Days of real or invented people, released under several policies at one daily budget, and attacked.

``days_of`` learns a prior and a Markov model from each person's earlier days; ``replay`` releases the later ones under
each strategy and measures the tracking attacks on the outputs.
"""

from privacygames_study.replays import plots
from privacygames_study.replays.days import days_of
from privacygames_study.replays.runner import Replayed, replay
from privacygames_study.replays.sharing_task import Days
from privacygames_study.replays.strategies import STRATEGIES

__all__ = ["STRATEGIES", "Days", "Replayed", "days_of", "plots", "replay"]
