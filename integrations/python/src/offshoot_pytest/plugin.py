"""Fixtures of pytest: a database for each test, module or session."""

import re
import uuid
from typing import Callable, Iterator, List, Optional

import pytest

from .engine import Engine, OffshootError, Vdb

# A VDB that nobody deletes, because its test was killed, goes by itself.
EXPIRES = "1h"
# What the databases of a run are branched from may be needed for longer.
ORIGIN_EXPIRES = "1d"
OPTIONS = {
    "offshoot_from": "the dSource or VDB that databases are made from",
    "offshoot_at": "the moment to open, as '2026-11-21 14:03:27+00'; the latest by default",
    "offshoot_bookmark": "the bookmark to open",
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


def _option(config: pytest.Config, name: str) -> Optional[str]:
    return config.getoption(name) or config.getini(name) or None


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


def _said(label: str, expires: str = EXPIRES) -> List[str]:
    return ["--expires", expires, "--label", "made-by=pytest", "--description", label]


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
        yield lambda label: _from_source(pytestconfig, offshoot_engine, _said(label))
        return
    said = _said("what the databases of a test run are branched from", ORIGIN_EXPIRES)
    origin = _from_source(pytestconfig, offshoot_engine, said)
    snapshot = offshoot_engine.freeze(origin.name)

    def branch(label: str) -> Vdb:
        return offshoot_engine.provision(_name(), origin.name, [*_said(label), "--snapshot", snapshot])

    yield branch
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
    offshoot_engine: Engine, _offshoot_provision: Callable[[str], Vdb]
) -> Iterator[Vdb]:
    """One database for all tests of a run that share it."""
    vdb = _offshoot_provision("a test run")
    yield vdb
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
        return offshoot_engine.provision(name, of.name, _said(_label(request)))

    yield branch
    for name in made:
        try:
            offshoot_engine.delete(name)
        except OffshootError as error:
            # It was never made.
            if error.code != "not_found":
                raise
