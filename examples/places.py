"""A place: a user of a city map tells a service roughly where they are."""

import privacygames as pg

city = pg.Grid(columns=5, rows=4, width=5.0, height=4.0)
visits = ["cell-7"] * 40 + ["cell-13"] * 25 + ["cell-2"] * 8 + ["cell-8"] * 6 + ["cell-16"] * 3
problem = pg.Problem(pg.Prior.from_visits(city, visits), cost="hamming", distance="euclidean")

mechanism = pg.design(problem, epsilon=0.9, distortion=0.6)
print("one output from home:", mechanism.sample("cell-7"))
print(pg.evaluate(mechanism, problem))
