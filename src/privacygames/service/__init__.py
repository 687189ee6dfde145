"""The service: a fleet's mechanisms and a store of ledgers behind an HTTP API, for many people. No mathematics.

- ``accounts.py``: each person's mechanism and ledger, and the fleet's generations;
- ``commits.py``: releases of several people in one transaction of the store;
- ``http_api.py``, ``bodies.py``: the API and the bodies of its requests and responses;
- ``tokens.py``: who may do what; ``guard.py``: requests that are refused before they are read;
- ``metrics.py``, ``logs.py``: counters and logs without secrets or names;
- ``serving.py``: worker processes, and how they end.
"""

from privacygames.service.accounts import ServiceSettings
from privacygames.service.http_api import create_service
from privacygames.service.serving import serve_fleet
from privacygames.service.tokens import SCOPES, Tokens, new_token

__all__ = ["SCOPES", "ServiceSettings", "Tokens", "create_service", "new_token", "serve_fleet"]
