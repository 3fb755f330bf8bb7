"""The package's types hold, and its stubs are those of the compiled module."""

import subprocess
import sys

import pytest

pytest.importorskip("mypy")


def check(folder, *arguments):
    outcome = subprocess.run([sys.executable, "-m", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


def test_types_hold(tmp_path):
    check(tmp_path, "mypy", "--strict", "-p", "terrane")


def test_stubs_are_those_of_the_module(tmp_path):
    check(tmp_path, "mypy.stubtest", "terrane._terrane", "--ignore-disjoint-bases")
