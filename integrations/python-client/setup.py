"""Generates offshoot_client.openapi from the API's document while the package is built: so it is never stale."""

import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

DOCUMENT = Path(__file__).resolve().parents[2] / "openapi" / "offshoot.json"


class Generate(build_py):
    def run(self):
        super().run()
        generator = [sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none", "--overwrite"]
        target = Path(self.build_lib) / "offshoot_client" / "openapi"
        subprocess.run([*generator, "--path", str(DOCUMENT), "--output-path", str(target)], check=True)


setup(cmdclass={"build_py": Generate})
