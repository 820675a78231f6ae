"""Run by tests/testbed/tests/integrations.rs against a real engine, whose dSource has a table `orders` of 100 rows."""

import os
import subprocess

import psycopg2
import pytest

from offshoot_pytest import OffshootError


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
