"""Both databases of a service."""

from store_databases import server, url

__all__ = ["server", "url"]
