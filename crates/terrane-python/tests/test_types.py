"""The package's types hold, and its stubs are those of the compiled module."""

import inspect
import subprocess
import sys

import pytest

import pyterrane
from pyterrane import _pyterrane, shards

pytest.importorskip("mypy")


def check(folder, *arguments):
    outcome = subprocess.run([sys.executable, "-m", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


def test_types_hold(tmp_path):
    check(tmp_path, "mypy", "--strict", "-p", "pyterrane")


def test_stubs_are_those_of_the_module(tmp_path):
    check(tmp_path, "mypy.stubtest", "pyterrane._pyterrane", "--ignore-disjoint-bases")


def test_an_option_has_one_default():
    """Functions that encode have the options of the compiled module, with its defaults."""
    options = inspect.signature(_pyterrane.Settings).parameters
    assert len(options) > 10
    for function in (pyterrane.encode, shards.plan):
        found = inspect.signature(function).parameters
        assert {name: found[name].default for name in options} == {
            name: option.default for name, option in options.items()
        }
