"""A PostgreSQL server of the tests' own: Debian's programs, a fresh folder, a Unix socket and no port."""

import functools
import getpass
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

PROGRAMS = Path("/usr/lib/postgresql")
"""Where Debian installs the programs of each version."""

SETTINGS = (
    *("listen_addresses=''", "shared_buffers=16MB", "max_connections=40", "autovacuum=off"),
    *("log_min_messages=fatal", "max_wal_size=64MB"),
)


@functools.cache
def programs() -> Path | None:
    """The folder of initdb and pg_ctl; None where there are none."""
    folders = sorted(PROGRAMS.glob("*/bin"), key=lambda path: float(path.parent.name))
    return folders[-1] if folders and (folders[-1] / "initdb").exists() else None


def why_not() -> str | None:
    """Why no server can be started here; None if one can be."""
    if find_spec("psycopg") is None:
        return "psycopg is not installed: pip install 'privacygames[postgresql]'"
    if programs() is None:
        return "there is no PostgreSQL server: `make postgresql` installs Debian's"
    if os.geteuid() == 0 and not shutil.which("runuser"):
        return "PostgreSQL refuses to run as root, and there is no runuser"
    return None


class Server:
    """A server in a folder of its own; its user is "postgres" where the tests run as root.

    Args:
        folder: an empty folder with a short path, since that of a Unix socket may have 107 characters.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.data = folder, folder / "data"
        self.user = "postgres" if os.geteuid() == 0 else getpass.getuser()
        if os.geteuid() == 0:
            account = pwd.getpwnam("postgres")
            os.chown(folder, account.pw_uid, account.pw_gid)
        self.run("initdb", "-D", str(self.data), "-A", "trust", "--no-sync", "-U", "tests", "-E", "UTF8")

    def start(self) -> None:
        """Start it, and wait until it accepts connections."""
        options = " ".join(f"-c {each}" for each in (*SETTINGS, f"unix_socket_directories={self.folder}"))
        self.run("pg_ctl", "-D", str(self.data), "-w", "-l", str(self.folder / "log"), "-o", options, "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop it; "immediate" is a crash."""
        self.run("pg_ctl", "-D", str(self.data), "-m", mode, "-w", "stop")

    def is_running(self) -> bool:
        """Whether it runs."""
        return (self.data / "postmaster.pid").exists()

    def url(self, database: str) -> str:
        """The URL of a database."""
        return f"postgresql://tests@/{database}?host={self.folder}"

    def create(self, database: str) -> str:
        """An empty database; returns its URL."""
        import psycopg

        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {database}")
        return self.url(database)

    def drop(self, database: str) -> None:
        """Delete a database, whoever is connected to it."""
        import psycopg

        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {database} WITH (FORCE)")

    def run(self, program: str, *arguments: str) -> None:
        """Run one of the server's programs."""
        folder = programs()
        assert folder is not None
        command: Sequence[str] = [str(folder / program), *arguments]
        if os.geteuid() == 0:
            command = ["runuser", "-u", "postgres", "--", *command]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.folder)


@contextmanager
def running_server() -> Iterator[Server]:
    """A server that runs until the block ends."""
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    server = Server(folder)
    try:
        server.start()
        yield server
    finally:
        if server.is_running():
            server.stop("immediate")
        shutil.rmtree(folder, ignore_errors=True)
