"""The studio: a page and the HTTP API behind it, on this machine only. It contains no mathematics."""

from privacygames.studio.http_api import create_app
from privacygames.studio.job_queue import JobQueue, Ticket
from privacygames.studio.limits import Limits
from privacygames.studio.serving import Address, serve

__all__ = ["Address", "JobQueue", "Limits", "Ticket", "create_app", "serve"]
