"""Run by tests/testbed/tests/integrations.rs against a real engine, whose dSource has a table `orders` of 100 rows."""

import os
import subprocess
from datetime import datetime, timedelta, timezone

import psycopg2
import pytest

from offshoot_pytest import OffshootError, plugin


def count(vdb):
    with psycopg2.connect(vdb.uri) as session, session.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM orders")
        return cursor.fetchone()[0]


def change(vdb, sql):
    with psycopg2.connect(vdb.uri) as session, session.cursor() as cursor:
        cursor.execute(sql)


@pytest.mark.parametrize("turn", range(3))
def test_each_test_has_its_own(offshoot_db, turn):
    assert count(offshoot_db) == 100
    change(offshoot_db, "DELETE FROM orders")
    assert count(offshoot_db) == 0


# Where each test begins, not once a minute.
plugin.RENEW_S = 0
LASTING = ["a test run", "what the databases of a test run are branched from"]


def expiries(engine):
    shown = engine.command("vdb", "list")["vdbs"]
    return {vdb["name"]: vdb["expires_at"] for vdb in shown if vdb.get("description") in LASTING}


@pytest.fixture(scope="session")
def first_expiries(offshoot_engine, offshoot_session_db, pytestconfig):
    found = expiries(offshoot_engine)
    assert len(found) == (1 if pytestconfig.getoption("offshoot_fresh") else 2)
    return found


def test_what_lasts_goes_within_an_hour(first_expiries):
    hour = (datetime.now(timezone.utc) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%S")
    assert all(at[:19] <= hour for at in first_expiries.values())


def test_what_lasts_is_renewed_while_the_run_lives(first_expiries, offshoot_engine):
    now = expiries(offshoot_engine)
    # To the second: of fractions not all digits are written.
    assert all(now[name][:19] >= at[:19] and now[name] != at for name, at in first_expiries.items())


def test_a_session_has_one(offshoot_session_db):
    change(offshoot_session_db, "DELETE FROM orders WHERE id > 60")
    assert count(offshoot_session_db) == 60


def test_the_session_still_has_it(offshoot_session_db):
    assert count(offshoot_session_db) == 60


def test_a_branch_is_apart(offshoot_db, offshoot_branch):
    change(offshoot_db, "DELETE FROM orders WHERE id > 10")
    branch = offshoot_branch(offshoot_db)
    change(branch, "DELETE FROM orders")
    assert (count(offshoot_db), count(branch)) == (10, 0)


def test_programs_find_it(offshoot_db):
    line = ["psql", "-Atc", "SELECT count(*) FROM orders"]
    environment = {**os.environ, **offshoot_db.environment}
    shown = subprocess.run(line, env=environment, capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "100"


def test_it_is_labelled_and_expires(offshoot_engine, offshoot_db):
    shown = offshoot_engine.command("vdb", "show", offshoot_db.name)
    assert shown["labels"]["made-by"] == "pytest"
    assert "test_it_is_labelled_and_expires" in shown["description"]
    assert shown["expires_at"]


def test_refusals_are_told(offshoot_engine):
    with pytest.raises(OffshootError) as refused:
        offshoot_engine.provision("x", "nobody")
    assert refused.value.code == "not_found"
    assert refused.value.hint
