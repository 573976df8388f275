"""Certificate authorities and certificates for one run, made with the openssl command."""

import shutil
import subprocess

from shared.waiting import Failure, Skip

DAYS = "2"
KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]


class Authority:
    """A certificate authority, whose files are in a folder."""

    def __init__(self, folder, name):
        if shutil.which("openssl") is None:
            raise Skip("no openssl command")
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        #: The PEM file of its own certificate.
        self.file = folder / f"{name}.pem"
        self._key = folder / f"{name}.key"
        openssl("req", "-x509", *KEY, "-keyout", self._key, "-out", self.file, "-days", DAYS, "-subj", f"/CN={name}",
                "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign")

    def certificate(self, name, names=()):
        """Issues a certificate. Returns the PEM files of it and of its key. `names` are entries of subjectAltName."""
        folder = self._folder / self.file.stem
        folder.mkdir(exist_ok=True)
        certificate, key, request = folder / f"{name}.pem", folder / f"{name}.key", folder / f"{name}.csr"
        extensions = folder / f"{name}.ext"
        openssl("req", "-new", *KEY, "-keyout", key, "-out", request, "-subj", f"/CN={name}")
        lines = ["basicConstraints=CA:FALSE"] + ([f"subjectAltName={','.join(names)}"] if names else [])
        extensions.write_text("\n".join(lines) + "\n")
        openssl("x509", "-req", "-in", request, "-CA", self.file, "-CAkey", self._key, "-CAcreateserial", "-days", DAYS,
                "-extfile", extensions, "-out", certificate)
        return certificate, key


def openssl(*arguments):
    done = subprocess.run(["openssl", *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"openssl {arguments[0]}: {done.stderr.strip()[-500:]}")
