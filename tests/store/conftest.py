"""Both databases of a store."""

from store_databases import server, url

__all__ = ["server", "url"]
