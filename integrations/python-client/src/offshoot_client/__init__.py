"""Asks an engine of Offshoot. What its API has is in `offshoot_client.openapi`, which is generated; here is what everyone would have to
add: who the engine is, its errors as exceptions, and the end of a job."""

import hashlib
import hmac
import ssl
import time
from ipaddress import ip_address
from urllib.parse import urlsplit

import httpx

from .openapi import AuthenticatedClient
from .openapi.api.jobs import show_job

LOOK_S = 0.1
TIMEOUT_S = 60


class OffshootError(Exception):
    """What the engine refused, or why a job failed."""

    def __init__(self, code: str, message: str, hint: str = ""):
        super().__init__(f"{message} (hint: {hint})" if hint else message)
        self.code = code
        self.hint = hint


def connect(address: str, token: str, fingerprint: str | None = None) -> AuthenticatedClient:
    """Asks the engine at https://HOST:PORT, whose certificate has the fingerprint that `offshoot status` shows there, or one of
    loopback at http://127.0.0.1:PORT. Calls that the engine refuses raise OffshootError."""
    parts = urlsplit(address)
    verify: ssl.SSLContext | bool = True
    if parts.scheme == "https" and fingerprint:
        verify = _pinned(parts.hostname, parts.port or 443, fingerprint)
    elif parts.scheme != "http" or not _is_loopback(parts.hostname):
        raise ValueError("an engine is asked by https with its fingerprint, or by http on loopback")
    return AuthenticatedClient(
        base_url=address,
        token=token,
        verify_ssl=verify,
        timeout=httpx.Timeout(TIMEOUT_S),
        # The token is for the engine alone, not for a proxy that the environment names.
        httpx_args={"event_hooks": {"response": [_refuse]}, "trust_env": False},
    )


def wait(client: AuthenticatedClient, job: str, timeout_s: float = 3600) -> None:
    """Returns when a job has done its work."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        shown = show_job.sync(job, client=client)
        if shown.state == "done":
            return
        if shown.state in ("failed", "cancelled"):
            if shown.error:
                raise OffshootError(shown.error.code, shown.error.message, shown.error.hint)
            raise OffshootError("cancelled", "the job was cancelled")
        time.sleep(LOOK_S)
    raise TimeoutError(f"{job} goes on after {timeout_s} s")


def _is_loopback(host: str | None) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host or "").is_loopback
    except ValueError:
        return False


def _pinned(host: str, port: int, fingerprint: str) -> ssl.SSLContext:
    """Trusts one certificate and no other: the one that has the fingerprint. Nothing is sent before that is known."""
    shown = ssl.get_server_certificate((host, port), timeout=TIMEOUT_S)
    actual = "sha256:" + hashlib.sha256(ssl.PEM_cert_to_DER_cert(shown)).hexdigest()
    if not hmac.compare_digest(actual, fingerprint):
        raise OffshootError("unauthorized", f"the certificate is not what the engine is known by: {actual}")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    # Whoever signed it: it is trusted itself.
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cadata=shown)
    return context


def _refuse(answer: httpx.Response) -> None:
    if answer.is_success:
        return
    answer.read()
    try:
        error = answer.json()["error"]
        refusal = OffshootError(error["code"], error["message"], error["hint"])
    except (ValueError, KeyError, TypeError):
        raise OffshootError("internal", f"not an engine's answer: {answer.status_code}") from None
    raise refusal
