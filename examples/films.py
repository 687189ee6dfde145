"""A set of films: a recommender gets a watch list that is near the true one, in Jaccard's distance."""

from itertools import combinations

import privacygames as pg

titles = ["Alien", "Brazil", "Casablanca", "Dune"]
lists = [frozenset(chosen) for size in (1, 2, 3) for chosen in combinations(titles, size)]
films = pg.Sets(lists)
problem = pg.Problem(pg.Prior.uniform(films), cost="jaccard", distance="jaccard")

mechanism = pg.design(problem, epsilon=2.0, distortion=0.4)
answer = mechanism.sample({"Alien", "Dune"})
assert isinstance(answer, frozenset)
print("one answer for {Alien, Dune}:", sorted(answer))
print(pg.evaluate(mechanism, problem))
