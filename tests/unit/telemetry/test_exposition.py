"""What engines say of themselves, put together into one page that Prometheus can read."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from app.model_status import EngineText
from app.telemetry.exposition import MetricsPage, merged
from app.telemetry.metrics import RequestMetrics
from tests.fakes.metrics_page import MetricsPage as Page

LLAMA = """\
# HELP llamacpp:prompt_tokens_total Number of prompt tokens processed.
# TYPE llamacpp:prompt_tokens_total counter
llamacpp:prompt_tokens_total 38
# HELP llamacpp:n_busy_slots_per_decode Average number of busy slots per llama_decode() call
# TYPE llamacpp:n_busy_slots_per_decode counter
llamacpp:n_busy_slots_per_decode 1.5
# HELP llamacpp:requests_processing Number of requests processing.
# TYPE llamacpp:requests_processing gauge
llamacpp:requests_processing 0
llamacpp:accepted_total{position="0"} 3
"""


def text(said: str, engine: str = "e1", model: str = "m") -> EngineText:
    """What one engine says."""
    return EngineText(engine, model, said)


def test_names_values_and_kinds_stay() -> None:
    """With two labels more; a counter that is not called total is not renamed."""
    assert merged([text(LLAMA)]) == """\
# HELP llamacpp:prompt_tokens_total Number of prompt tokens processed.
# TYPE llamacpp:prompt_tokens_total counter
llamacpp:prompt_tokens_total{engine="e1",model="m"} 38
# HELP llamacpp:n_busy_slots_per_decode Average number of busy slots per llama_decode() call
# TYPE llamacpp:n_busy_slots_per_decode counter
llamacpp:n_busy_slots_per_decode{engine="e1",model="m"} 1.5
# HELP llamacpp:requests_processing Number of requests processing.
# TYPE llamacpp:requests_processing gauge
llamacpp:requests_processing{engine="e1",model="m"} 0
# HELP llamacpp:accepted_total \n# TYPE llamacpp:accepted_total untyped
llamacpp:accepted_total{engine="e1",model="m",position="0"} 3
""".replace("_total \\n", "_total \n")


def test_each_metric_is_told_in_one_place() -> None:
    """However many engines have it; two replicas of one model stay two series."""
    page = Page(merged([text(LLAMA), text(LLAMA, "e2"), text(LLAMA, "e3", "n")]))
    assert page.by("llamacpp:prompt_tokens_total", "engine", "model") == {
        ("e1", "m"): 38, ("e2", "m"): 38, ("e3", "n"): 38}


@pytest.mark.parametrize("bad", [
    "<html>no</html>", '{"error": "not supported"}', "a{b} 1", 'a{b="c} 1', "a one", "# TYPE a",
    "a 1\na 2", LLAMA + "\nx{", LLAMA + 'a{b="c",b="d"} 1', "a 1\n" * 100_000])
def test_a_bad_answer_is_left_out(bad: str) -> None:
    """Of that engine all of it, of the others nothing."""
    assert merged([text(bad)]) == ""
    assert merged([text(bad, "e0"), text(LLAMA)]) == merged([text(LLAMA)])


@pytest.mark.parametrize("name", ["loop_calls_total", "process_open_fds", "loop_anything"])
def test_no_engine_says_what_is_the_gateways(name: str) -> None:
    """Another gateway may be the engine."""
    assert merged([text(f"# TYPE {name} counter\n{name} 1\nother 2\n")]).count("\n") == 3


def test_an_engine_of_another_mind_is_passed_over() -> None:
    """A metric has one kind on a page."""
    other = LLAMA.replace("requests_processing gauge", "requests_processing counter")
    page = Page(merged([text(LLAMA), text(other, "e2")]))
    assert page.by("llamacpp:prompt_tokens_total", "engine") == {("e1",): 38, ("e2",): 38}
    assert 'requests_processing{engine="e2"' not in page.text


def test_labels_of_the_same_name_are_kept() -> None:
    """As Prometheus keeps those of what it scrapes."""
    page = Page(merged([text('a{model="theirs",engine="v1",x="y"} 1\n')]))
    [sample] = page.samples
    assert sample.labels == {"engine": "e1", "model": "m", "exported_model": "theirs",
                             "exported_engine": "v1", "x": "y"}


def test_any_label_can_be_read_back() -> None:
    """Quotes, backslashes and newlines too."""
    evil = 'a"b\\c\nd\\n}'
    [sample] = Page(merged([text("a 1\n", engine=evil, model="é" + evil)])).samples
    assert sample.labels == {"engine": evil, "model": "é" + evil}


def test_histograms_stay_whole() -> None:
    """Their buckets, sum and count are one metric."""
    found = merged([text('# TYPE h histogram\nh_bucket{le="1"} 0\nh_bucket{le="2.0"} 1\n'
                         'h_bucket{le="+Inf"} 1\nh_sum 1.5\nh_count 1\n')])
    assert found.count("# TYPE") == 1
    assert Page(found).by("h_bucket", "le") == {("2.0",): 1, ("+Inf",): 1}


@pytest.mark.parametrize("value", ["+Inf", "-Inf", "NaN", "1e-300", "-0"])
def test_every_number_passes(value: str) -> None:
    """As the format writes it."""
    [sample] = Page(merged([text(f"a {value}\n")])).samples
    assert math.isnan(sample.value) if value == "NaN" else sample.value == float(value)


def test_the_page_begins_with_the_gateways_own() -> None:
    """And they are no less readable for what stands behind them."""
    registry = CollectorRegistry()
    registry.register(RequestMetrics())
    page = Page(MetricsPage(registry, lambda: [text(LLAMA)]).made().decode())
    assert list(page.types)[0] == "loop_calls_in_flight"
    assert "llamacpp:requests_processing" in page.types


def test_an_engine_whose_model_is_not_shown_is_left_out() -> None:
    """Its lines and no others."""
    def engines() -> list[EngineText]:
        return [text(LLAMA), text(LLAMA, "e2", "hidden")]

    page = Page(MetricsPage(CollectorRegistry(), engines).made(lambda model: model == "m").decode())
    assert {sample.labels["engine"] for sample in page.samples} == {"e1"}


@given(st.lists(st.one_of(st.text(max_size=40), st.sampled_from(LLAMA.splitlines())), max_size=8))
def test_whatever_an_engine_says_the_page_can_be_read(lines: list[str]) -> None:
    """Left out or told; never an error, never a page that is none."""
    found = merged([text(LLAMA), text("\n".join(lines), "e2")])
    assert Page(found).value("llamacpp:n_busy_slots_per_decode_total", engine="e1") == 1.5
