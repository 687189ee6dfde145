"""Write the conformance vectors: ``PYTHONPATH=src:tests python -m device.write_vectors`` in a checkout."""

import base64
import json
import random
from pathlib import Path
from typing import Any

import privacygames as pg
from device.cases import mechanisms, plain_output, plain_secret, secrets_of

VECTORS = Path(__file__).parents[2] / "device" / "test" / "vectors.json"
DRAWS = 3
"""Draws for each secret."""


def vectors() -> list[dict[str, Any]]:
    """Files of every kind, with the outputs that given random bytes choose for given secrets."""
    source = random.Random(2024)
    cases = []
    for name, mechanism in mechanisms().items():
        content = pg.device.encode(mechanism)
        on_device = pg.device.decode(content)
        draws = []
        for secret in secrets_of(name, mechanism):
            for _ in range(DRAWS):
                given = source.randbytes(64)
                output = on_device.draw(secret, lambda count, given=given: given[:count])  # type: ignore[misc]
                drawn = {"secret": plain_secret(name, secret), "random": given.hex(), "output": plain_output(output)}
                draws.append(drawn)
        file = base64.b64encode(content).decode()
        cases.append({"name": name, "digest": on_device.digest, "file": file, "draws": draws})
    return cases


def as_text(cases: list[dict[str, Any]]) -> str:
    """One case and one draw a line, so that a change shows where it is."""
    lines = []
    for case in cases:
        draws = ",\n  ".join(json.dumps(draw, ensure_ascii=False) for draw in case["draws"])
        head = json.dumps({key: case[key] for key in ("name", "digest", "file")}, ensure_ascii=False)
        lines.append(f'{head[:-1]}, "draws": [\n  {draws}]}}')
    return "[\n" + ",\n".join(lines) + "\n]\n"


if __name__ == "__main__":
    VECTORS.write_text(as_text(vectors()), encoding="utf-8")
