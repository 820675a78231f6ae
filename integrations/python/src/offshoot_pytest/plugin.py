"""Fixtures of pytest: a database for each test, or for the whole session."""

import re
import time
import uuid
from typing import Callable, Dict, Iterator, List, Optional

import pytest

from .engine import Engine, OffshootError, Vdb

# A VDB that nobody deletes, because its test was killed, goes by itself.
EXPIRES = "1h"
# What lasts for the run is given that time again where a test begins, so often at most.
RENEW_S = 60
OPTIONS = {
    "offshoot_from": "the dSource or VDB that databases are made from",
    "offshoot_at": "the moment to open, as '2026-11-21 14:03:27+00'; the latest by default",
    "offshoot_bookmark": "the bookmark to open",
    "offshoot_expires": f"how long a database is kept that nobody deletes, longer than any test takes; {EXPIRES} by default",
    "offshoot_pool": "the pool whose engine is asked",
    "offshoot_server": "the engine's address, where it is elsewhere",
    "offshoot_token_file": "a file with your token",
    "offshoot_program": "the program; 'offshoot' by default",
}
FRESH = "each test has the moment at which it begins, instead of all having that of the run"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("offshoot", "databases from an Offshoot engine")
    for name, text in OPTIONS.items():
        group.addoption("--" + name.replace("_", "-"), dest=name, default=None, help=text)
        parser.addini(name, text)
    group.addoption("--offshoot-fresh", dest="offshoot_fresh", action="store_true", default=None, help=FRESH)
    parser.addini("offshoot_fresh", FRESH, type="bool", default=False)


class _Lasting:
    """Databases that are needed for longer than one test, as long as the run lives."""

    def __init__(self, config: pytest.Config):
        self._expires = _expires(config)
        self._of: Dict[str, Engine] = {}
        self._renewed_s = 0.0

    def add(self, engine: Engine, name: str) -> None:
        self._of[name] = engine

    def remove(self, name: str) -> None:
        self._of.pop(name, None)

    def pytest_runtest_setup(self) -> None:
        now_s = time.monotonic()
        if not self._of or now_s - self._renewed_s < RENEW_S:
            return
        self._renewed_s = now_s
        for name, engine in self._of.items():
            try:
                engine.command("vdb", "set", name, "--expires", self._expires)
            except OffshootError:
                pass  # A test that needs it says what is wrong.


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Lasting(config), "offshoot-lasting")


def _lasting(config: pytest.Config) -> _Lasting:
    return config.pluginmanager.get_plugin("offshoot-lasting")


def _option(config: pytest.Config, name: str) -> Optional[str]:
    return config.getoption(name) or config.getini(name) or None


def _expires(config: pytest.Config) -> str:
    return _option(config, "offshoot_expires") or EXPIRES


@pytest.fixture(scope="session")
def offshoot_engine(pytestconfig: pytest.Config) -> Engine:
    """The engine that databases come from."""
    return Engine(
        program=_option(pytestconfig, "offshoot_program") or "offshoot",
        pool=_option(pytestconfig, "offshoot_pool"),
        server=_option(pytestconfig, "offshoot_server"),
        token_file=_option(pytestconfig, "offshoot_token_file"),
    )


def _name() -> str:
    return "t-" + uuid.uuid4().hex[:16]


def _said(config: pytest.Config, label: str) -> List[str]:
    return ["--expires", _expires(config), "--label", "made-by=pytest", "--description", label]


def _from_source(config: pytest.Config, engine: Engine, said: List[str]) -> Vdb:
    source = _option(config, "offshoot_from")
    if not source:
        raise pytest.UsageError("offshoot_from is not set: name a dSource or VDB in pytest's settings")
    at, bookmark = _option(config, "offshoot_at"), _option(config, "offshoot_bookmark")
    if at:
        return engine.provision(_name(), source, [*said, "--at", at])
    if bookmark:
        return engine.provision(_name(), source, [*said, "--bookmark", bookmark])
    # A copy that runs already, where the policy of the dSource keeps some (policy set --warm N).
    return engine.provision(_name(), source, [*said, "--warm"])


@pytest.fixture(scope="session")
def _offshoot_provision(
    pytestconfig: pytest.Config, offshoot_engine: Engine
) -> Iterator[Callable[[str], Vdb]]:
    """Makes databases. The log up to their moment is replayed once, for a VDB of which a snapshot is taken: from that the
    others are branched, and start as they are."""
    if pytestconfig.getoption("offshoot_fresh") or pytestconfig.getini("offshoot_fresh"):
        yield lambda label: _from_source(pytestconfig, offshoot_engine, _said(pytestconfig, label))
        return
    said = _said(pytestconfig, "what the databases of a test run are branched from")
    origin = _from_source(pytestconfig, offshoot_engine, said)
    _lasting(pytestconfig).add(offshoot_engine, origin.name)
    snapshot = offshoot_engine.freeze(origin.name)

    def branch(label: str) -> Vdb:
        return offshoot_engine.provision(_name(), origin.name, [*_said(pytestconfig, label), "--snapshot", snapshot])

    yield branch
    _lasting(pytestconfig).remove(origin.name)
    offshoot_engine.delete(origin.name)


def _label(request: pytest.FixtureRequest) -> str:
    return re.sub(r"[^ -~]", "?", request.node.nodeid)[:200]


@pytest.fixture
def offshoot_db(
    request: pytest.FixtureRequest,
    offshoot_engine: Engine,
    _offshoot_provision: Callable[[str], Vdb],
) -> Iterator[Vdb]:
    """A database of this test alone."""
    vdb = _offshoot_provision(_label(request))
    yield vdb
    offshoot_engine.delete(vdb.name)


@pytest.fixture(scope="session")
def offshoot_session_db(
    pytestconfig: pytest.Config, offshoot_engine: Engine, _offshoot_provision: Callable[[str], Vdb]
) -> Iterator[Vdb]:
    """One database for all tests of a run that share it."""
    vdb = _offshoot_provision("a test run")
    _lasting(pytestconfig).add(offshoot_engine, vdb.name)
    yield vdb
    _lasting(pytestconfig).remove(vdb.name)
    offshoot_engine.delete(vdb.name)


@pytest.fixture
def offshoot_branch(
    request: pytest.FixtureRequest, offshoot_engine: Engine
) -> Iterator[Callable[[Vdb], Vdb]]:
    """Makes branches of a database, as it is at that time; they go at the end of the test."""
    made = []

    def branch(of: Vdb) -> Vdb:
        name = _name()
        made.append(name)
        return offshoot_engine.provision(name, of.name, _said(request.config, _label(request)))

    yield branch
    for name in made:
        try:
            offshoot_engine.delete(name)
        except OffshootError as error:
            # It was never made.
            if error.code != "not_found":
                raise
