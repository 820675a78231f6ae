"""An engine, asked by its command line: the same contract that scripts rely on."""

import json
import subprocess
from dataclasses import dataclass
from typing import Dict, List, Optional
from urllib.parse import unquote, urlsplit

# A job that takes longer than this has met something that a test should not wait for.
PATIENCE_S = 120


class OffshootError(Exception):
    """What the engine refused, with what fixes it."""

    def __init__(self, code: str, message: str, hint: str):
        super().__init__(f"{message} (hint: {hint})" if hint else message)
        self.code = code
        self.hint = hint


@dataclass(frozen=True)
class Vdb:
    """A virtual database, and how to connect to it."""

    name: str
    host: str
    port: int
    user: str
    password: str
    dbname: str
    uri: str

    @property
    def environment(self) -> Dict[str, str]:
        """What programs that know libpq, or DATABASE_URL, read."""
        return {
            "PGHOST": self.host,
            "PGPORT": str(self.port),
            "PGUSER": self.user,
            "PGPASSWORD": self.password,
            "PGDATABASE": self.dbname,
            "DATABASE_URL": self.uri,
        }


class Engine:
    """An engine that the command `offshoot` reaches."""

    def __init__(
        self,
        program: str = "offshoot",
        pool: Optional[str] = None,
        server: Optional[str] = None,
        token_file: Optional[str] = None,
    ):
        options = {"--pool": pool, "--server": server, "--token-file": token_file}
        self._program = program
        self._options = [word for name, value in options.items() if value for word in (name, value)]

    def command(self, *words: str) -> dict:
        """Runs a command, and returns what it prints with --json."""
        line = [self._program, "--json", *self._options, *words]
        try:
            done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S)
        except FileNotFoundError as error:
            hint = "put it on the PATH, or set offshoot_program"
            raise OffshootError("host_unprepared", f"{self._program} is not found", hint) from error
        try:
            answer = json.loads(done.stdout)
        except ValueError:
            raise OffshootError("internal", (done.stderr or done.stdout).strip(), "") from None
        if done.returncode != 0 and "error" in answer:
            error = answer["error"]
            raise OffshootError(error["code"], error["message"], error.get("hint", ""))
        return answer

    def provision(self, name: str, source: str, options: Optional[List[str]] = None) -> Vdb:
        """Makes a VDB."""
        return _vdb(self.command("vdb", "provision", name, "--from", source, *(options or [])))

    def freeze(self, name: str) -> str:
        """Takes a snapshot of a VDB, whose server is not needed any more; returns its id."""
        snapshot = self.command("snapshot", "take", name)
        self.command("vdb", "stop", name)
        return snapshot["id"]

    def delete(self, name: str) -> None:
        """Asks for the end of a VDB, and does not wait for it."""
        self.command("vdb", "delete", name, "--yes", "--detach")


def _vdb(shown: dict) -> Vdb:
    parts = urlsplit(shown["uri"])
    return Vdb(
        name=shown["name"],
        host=shown["host"],
        port=shown["port"],
        user=shown["user"],
        password=unquote(parts.password or ""),
        dbname=unquote(parts.path.lstrip("/")),
        uri=shown["uri"],
    )
