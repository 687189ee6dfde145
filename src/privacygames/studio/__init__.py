"""The studio: a page and the HTTP API behind it, on this machine only. It contains no mathematics."""

from privacygames.studio.desktop import data_directory, install_entry, remove_entry
from privacygames.studio.error_handlers import add_error_handlers
from privacygames.studio.http_api import create_app
from privacygames.studio.http_errors import Refused
from privacygames.studio.job_queue import JobQueue, Ticket
from privacygames.studio.ledger_folder import default_folder
from privacygames.studio.limits import Limits
from privacygames.studio.requests import Body, ErrorBody, LabelBody
from privacygames.studio.security import LOOPBACK, Asgi, Guard, Message, Receive, Scope, Send
from privacygames.studio.serving import (
    Address,
    check_token_strength,
    listener_at,
    require_safe,
    serve,
    server_config,
)
from privacygames.studio.views import json_label, label_from

__all__ = [
    "LOOPBACK",
    "Address",
    "Asgi",
    "Body",
    "ErrorBody",
    "Guard",
    "JobQueue",
    "LabelBody",
    "Limits",
    "Message",
    "Receive",
    "Refused",
    "Scope",
    "Send",
    "Ticket",
    "add_error_handlers",
    "check_token_strength",
    "create_app",
    "data_directory",
    "default_folder",
    "install_entry",
    "json_label",
    "label_from",
    "listener_at",
    "remove_entry",
    "require_safe",
    "serve",
    "server_config",
]
