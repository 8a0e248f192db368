"""The schema for editors, the example files, and random texts."""

from __future__ import annotations

import importlib.util
import json
import random
import re
import tomllib
from pathlib import Path

import pytest

import pibls
from internals import EXTENSIONS, KINDS, SHAPES, WAYS
from pibls import problems
from pibls.text import read_file

ROOT = Path(__file__).parent.parent
SCHEMA = json.loads((Path(pibls.__file__).parent / "text" / "schema.json").read_text())
EXAMPLES = sorted((ROOT / "examples").glob("*.toml"))
TYPES = {"string": str, "object": dict, "array": list, "boolean": bool, "integer": int, "number": (int, float)}


def faults(value, schema, place="file"):
    """Yield what is wrong with a value, for the few words of JSON Schema that are used here."""
    schema = {**schema, **_definition(schema)} if "$ref" in schema else schema
    if "type" in schema:
        kind = TYPES[schema["type"]]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            yield f"{place} is no {schema['type']}"
            return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{place} is none of {schema['enum']}"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{place} does not match"
    if "anyOf" in schema and all(list(faults(value, option, place)) for option in schema["anyOf"]):
        yield f"{place} fits nothing"
    if isinstance(value, dict):
        yield from (f"{place} lacks {key}" for key in schema.get("required", ()) if key not in value)
        for key, entry in value.items():
            inner = schema.get("properties", {}).get(key, schema.get("additionalProperties", {}))
            if inner is False:
                yield f"{place} has a key {key}"
            else:
                yield from faults(entry, inner, f"{place}.{key}")
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", 10**9):
            yield f"{place} has {len(value)} entries"
        for i, entry in enumerate(value):
            yield from faults(entry, schema.get("items", {}), f"{place}[{i}]")


def _definition(schema):
    return SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_can_be_read_and_fit_the_schema(path):
    assert read_file(path).title
    assert list(faults(tomllib.loads(path.read_text()), SCHEMA)) == []


@pytest.mark.parametrize("name", ["annulus", "stokes", "schroedinger", "elasticity", "poisson_star", "polygon"])
def test_written_problems_fit_the_schema(name):
    text = problems.catalogue()[name]().to_text()
    assert list(faults(tomllib.loads(text), SCHEMA)) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("equation = 'u'", "lacks equations"),
        ("equations = 3", "fits nothing"),
        ("equations = 'u'\n[domain]\nshape = 'dsk'", "fits nothing"),
        ("equations = 'u'\n[domain]\nshape = 'interval'\nx = [0]", "1 entries"),
        ("equations = 'u'\n[[conditions]]\nvalue = 0", "lacks kind"),
        ("equations = 'u'\n[solve]\ntoll = 0", "has a key toll"),
        ("equations = 'u'\n[solve]\nseed = true", "no integer"),
    ],
)
def test_the_schema_notices(text, words):
    assert any(words in fault for fault in faults(tomllib.loads(text), SCHEMA))


def test_the_schema_knows_what_the_reader_knows():
    definitions = SCHEMA["$defs"]
    plain, file = definitions["shape"]["properties"]["shape"]["anyOf"]
    assert plain["enum"] == list(SHAPES)
    assert re.findall(r"\w{3,}", file["pattern"]) == [extension.lstrip(".") for extension in EXTENSIONS]
    assert SCHEMA["properties"]["solve"]["properties"]["time"]["enum"] == list(WAYS)
    assert definitions["condition"]["properties"]["kind"]["enum"] == list(KINDS)


def fuzz():
    spec = importlib.util.spec_from_file_location("fuzz_text", ROOT / "benchmarks" / "fuzz_text.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_random_texts_are_read_or_refused():
    module, rng = fuzz(), random.Random(2)
    accepted = sum(module.attempt(module.equation(rng), is_file=False) for _ in range(500))
    assert 50 < accepted < 450


def test_random_files_are_read_or_refused():
    module, rng = fuzz(), random.Random(3)
    accepted = sum(module.attempt(module.problem_file(rng), is_file=True) for _ in range(100))
    assert 2 < accepted < 98
