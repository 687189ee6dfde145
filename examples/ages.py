"""An age: a survey wants ages, people give intervals, nearby ages must look alike."""

import privacygames as pg

ages = pg.Numbers(range(20, 50))
counts = [30 + 2 * min(age - 20, 49 - age) for age in range(20, 50)]
problem = pg.Problem(
    pg.Prior.from_counts(ages, counts),
    cost="absolute",  # answering with an interval costs the mean distance to its members
    distance="absolute",
    observables=ages.intervals(3),
)

mechanism = pg.design(problem, epsilon=0.3)
print("one answer for a person of 34:", mechanism.sample(34))
print(pg.evaluate(mechanism, problem))
