"""Wrong tokens make an address wait, longer and longer; nobody locks out anybody else."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from privacygames.errors import InvalidProblem
from privacygames.studio import Address, create_app, serve
from privacygames.studio.token_throttle import FREE_ATTEMPTS, LONGEST_WAIT_SECONDS, MOST_ADDRESSES, TokenThrottle
from studio_server import HOME

TOKEN = "a-token-of-enough-characters"
NAMED = "http://studio.example"


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def asking(app: Any, address: str, home: str = HOME) -> TestClient:
    return TestClient(app, base_url=home, client=(address, 5000))


def tried(client: TestClient, token: str) -> Any:
    return client.get("/api/about", headers={"authorization": f"Bearer {token}"})


def served() -> Any:
    return create_app(token=TOKEN, hosts=frozenset({"127.0.0.1", "studio.example"}))


def test_an_address_waits_and_others_do_not() -> None:
    app = served()
    stranger, owner = asking(app, "192.0.2.7", NAMED), asking(app, "192.0.2.8", NAMED)
    codes = [tried(stranger, f"wrong-{number}").status_code for number in range(FREE_ATTEMPTS + 3)]
    assert codes == [401] * FREE_ATTEMPTS + [429] * 3
    refusal = tried(stranger, TOKEN)  # the right one is not looked at either: else it could be found by trying
    assert refusal.status_code == 429
    assert refusal.json()["error"]["status"] == "TOKEN_WAIT"
    assert 1 <= int(refusal.headers["retry-after"]) <= LONGEST_WAIT_SECONDS
    assert tried(owner, TOKEN).status_code == 200


def test_the_owner_on_this_machine_is_never_locked_out() -> None:
    app = served()
    here = asking(app, "127.0.0.1")
    codes = {tried(here, f"wrong-{number}").status_code for number in range(50)}
    assert codes == {401, 429}
    assert tried(here, TOKEN).status_code == 200
    through_a_proxy = asking(app, "127.0.0.1", NAMED)  # which does not say for whom it asks
    assert tried(through_a_proxy, TOKEN).status_code == 429


def test_asking_without_a_token_is_no_attempt() -> None:
    client = asking(served(), "192.0.2.7", NAMED)
    assert {client.get("/api/about").status_code for _ in range(20)} == {401}
    assert tried(client, TOKEN).status_code == 200


def test_waits_double_and_end() -> None:
    clock = Clock()
    throttle = TokenThrottle(clock)
    waits = []
    for _ in range(30):
        throttle.count("192.0.2.7")
        waits.append(throttle.wait("192.0.2.7"))
        clock.now += waits[-1]
        assert throttle.wait("192.0.2.7") == 0
    assert waits[:8] == [0, 0, 0, 0, 1, 2, 4, 8]
    assert max(waits) == waits[-1] == LONGEST_WAIT_SECONDS
    clock.now += 4000
    throttle.count("192.0.2.7")
    assert throttle.wait("192.0.2.7") == 0


def test_a_network_of_ipv6_is_one_address_and_memory_is_limited() -> None:
    throttle = TokenThrottle(Clock())
    for number in range(FREE_ATTEMPTS):
        throttle.count(f"2001:db8:0:1::{number}")
    assert throttle.wait("2001:db8:0:1:ffff::1") == 1
    assert throttle.wait("2001:db8:0:2::1") == 0
    for number in range(MOST_ADDRESSES + 10):
        throttle.count(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
    assert throttle.wait("2001:db8:0:1::1") == 0  # the oldest is forgotten


def test_a_token_of_one_character_is_refused() -> None:
    with pytest.raises(InvalidProblem, match="different characters"):
        serve(Address("127.0.0.1", 0), token="a" * 40)
