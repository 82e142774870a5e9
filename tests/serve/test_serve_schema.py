"""The service keeps its OpenAPI schema, whatever is sent to it: schemathesis makes requests of it, right and wrong."""

import json

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import positive_data_acceptance

from helpers.served import ask, in_thread
from outword.serve.limits import Limits

CALLS = [
    ("GET", "/healthz"),
    ("GET", "/metrics"),
    ("GET", "/readyz"),
    ("GET", "/v1/detector"),
    ("GET", "/v1/detectors/{key}"),
    ("POST", "/v1/detectors"),
    ("POST", "/v1/detectors/{key}/artifact"),
    ("POST", "/v1/detectors/{key}/threshold"),
    ("POST", "/v1/score"),
]
POSTS = [path for method, path in CALLS if method == "POST"]
EXAMPLES = 25  # of each call, in each test


@pytest.fixture(scope="module")
def address(detector):
    with in_thread(detector, Limits(labels=4, detectors=2)) as address:
        yield address


@pytest.fixture(scope="module")
def api(address):
    found = schemathesis.openapi.from_url(f"{address}/openapi.json")
    found.config.checks.negative_data_rejection.expected_statuses.append("413")  # wrong, and too large as well
    return found


@pytest.fixture(scope="module")
def own(address):
    return json.loads(ask(address, "GET", "/v1/detector")[2])["id"]


def test_these_are_all_calls(api):
    operations = (found.ok() for found in api.get_all_operations())
    assert sorted((operation.method.upper(), operation.path) for operation in operations) == CALLS


def follow(operation, own, mode):
    """Call it many times; some of its ids are that of a detector."""

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy(generation_mode=mode), known=st.booleans())
    def once(case, known):
        if known and case.path_parameters:
            case.path_parameters["key"] = own
        case.call_and_validate(excluded_checks=[positive_data_acceptance])  # what follows the schema may be no image

    once()


@pytest.mark.parametrize(("method", "path"), CALLS)
def test_answers_follow_the_schema(api, own, method, path):
    """No 500, no status and no answer that the schema does not have."""
    follow(api[path][method], own, GenerationMode.POSITIVE)


@pytest.mark.parametrize("path", POSTS)
def test_what_breaks_the_schema_is_refused(api, own, path):
    follow(api[path]["POST"], own, GenerationMode.NEGATIVE)


@pytest.mark.parametrize("path", POSTS)
def test_bodies_that_are_not_what_they_say_are_refused(address, own, path):
    whole = b'{"labels": ["cat", "dog"], "images": ["aGk="], "embeddings": [[1e999, NaN]], "inside": [-0.1]}'
    cut = st.builds(lambda start, end: whole[start:end], *[st.integers(0, len(whole))] * 2)
    kinds = st.sampled_from(["application/json", "multipart/form-data; boundary=x", "text/plain", "application/", ""])

    @settings(max_examples=EXAMPLES, deadline=None)
    @given(body=st.one_of(st.binary(), cut, st.builds(b"--x\r\n%b\r\n--x--".__mod__, st.binary())), kind=kinds)
    def refused(body, kind):
        status, _, answer = ask(address, "POST", path.format(key=own), body, kind=kind)
        assert status in (400, 415, 422)
        assert sorted(json.loads(answer)["error"]) == ["code", "hint", "message"]

    refused()
