import type { Mechanism } from "./types.js";

/** The parameters of planar Laplace noise. */
export interface PlanarLaplaceOptions {
  /** The guarantee: epsilon per kilometre, between any two points of the Earth. */
  readonly epsilonPerKm: number;
  /** The step of the lattice that outputs lie on, in metres. */
  readonly latticeMetres: number;
  /** Up to this distance the noise follows the planar Laplace distribution; beyond, a geometric one. */
  readonly radiusKm: number;
}

/** Discretised planar Laplace noise for points anywhere on the Earth; `kind` is "points" and `box` is null. */
export function planarLaplace(_options: PlanarLaplaceOptions): Mechanism {
  throw new Error("not written yet");
}
