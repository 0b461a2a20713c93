"""Certificates that vouch for themselves, made by the program `openssl` when a test needs them."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path
from typing import NamedTuple

OPENSSL = shutil.which("openssl")


class Certificate(NamedTuple):
    """Files in PEM."""

    certificate: Path
    key: Path


def certificate(folder: Path, name: str) -> Certificate:
    """Make one for servers on loopback and for the client `name`; the same name again gives another key."""
    assert OPENSSL is not None
    made = Certificate(folder / f"{name}.pem", folder / f"{name}.key")
    command = [OPENSSL, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-keyout", str(made.key), "-out", str(made.certificate), "-days", "2", "-subj", f"/CN={name}"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(command, check=True, capture_output=True)
    return made


def server_context(own: Certificate, *clients: Certificate) -> ssl.SSLContext:
    """Return what a server presents and, with `clients`, whom it asks for a certificate."""
    found = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    found.load_cert_chain(own.certificate, own.key)
    for client in clients:
        found.load_verify_locations(client.certificate)
        found.verify_mode = ssl.CERT_OPTIONAL
    return found
