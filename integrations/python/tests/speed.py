"""How long a test waits for a database of its own.

    PYTHONPATH=integrations/python/src python3 integrations/python/tests/speed.py --offshoot-from shop --offshoot-pool POOL

Runs tests one after the other, each with a database, and prints medians and 95th percentiles in ms: what passes before the
test, in it and after it. Takes the options of the plugin. `SPEED_TESTS` says how many,
`SPEED_TEST_MS` how long each goes on.
"""

import os
import statistics
import sys
import time

import psycopg2
import pytest

TESTS = int(os.environ.get("SPEED_TESTS", "60"))
TEST_S = int(os.environ.get("SPEED_TEST_MS", "0")) / 1000


@pytest.mark.parametrize("turn", range(TESTS))
def test_has_a_database(offshoot_db, turn):
    session = psycopg2.connect(offshoot_db.uri)
    with session.cursor() as cursor:
        cursor.execute("CREATE TABLE speed AS SELECT 1 AS one")
    session.close()
    time.sleep(TEST_S)


class Durations:
    """What pytest says of the parts of each test."""

    def __init__(self):
        self.of = {"setup": [], "call": [], "teardown": []}

    def pytest_runtest_logreport(self, report):
        if report.when in self.of:
            self.of[report.when].append(report.duration)


def shown(what, seconds):
    ms = sorted(1000 * one for one in seconds)
    print(f"{what}: median {statistics.median(ms):.0f} ms, p95 {ms[int(0.95 * (len(ms) - 1))]:.0f} ms, most {ms[-1]:.0f} ms")


if __name__ == "__main__":
    durations = Durations()
    here = os.path.abspath(__file__)
    arguments = ["-q", "-p", "no:cacheprovider", "-p", "offshoot_pytest.plugin", here, *sys.argv[1:]]
    failed = pytest.main(arguments, plugins=[durations])
    if failed:
        sys.exit(failed)
    print(f"{TESTS} tests of {1000 * TEST_S:.0f} ms")
    shown("before the test, the database", durations.of["setup"])
    shown("the test: a session, and a table", durations.of["call"])
    shown("after it", durations.of["teardown"])
