"""Run by tests/testbed/tests/clients.rs against a real engine with a dSource `shop`: a job that fails is an error."""

import os

from offshoot_client import OffshootError, connect, wait
from offshoot_client.openapi.api.vdbs import delete_vdb, provision_vdb
from offshoot_client.openapi.models import HookEvent, MomentType0, MomentType0Kind, NewHook, ProvisionVdb

engine = connect(os.environ["OFFSHOOT_SERVER"], os.environ["OFFSHOOT_TOKEN"], os.environ.get("OFFSHOOT_FINGERPRINT"))
hook = NewHook(event=HookEvent.AFTER_PROVISION, sql="SELECT 1 / 0")
latest = MomentType0(kind=MomentType0Kind.LATEST)
asked = provision_vdb.sync(client=engine, body=ProvisionVdb(name="broken", from_="shop", moment=latest, hooks=[hook]))
try:
    wait(engine, asked.job)
except OffshootError as failed:
    print(failed.code)
wait(engine, delete_vdb.sync("broken", client=engine).job)
