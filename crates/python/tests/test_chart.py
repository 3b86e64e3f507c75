"""Charts are SVG that stands alone, and refuse what cannot be drawn."""

import xml.etree.ElementTree as xml

import pytest

import floatgate as fg


def test_a_chart_is_well_formed_whatever_its_names_are():
    chart = fg.Chart("a < b & \"c\"", "x", "y", {"<one>": ([1, 2], [3, 4]), "two": ([1], [5])})
    root = xml.fromstring(chart.svg())
    assert root.tag.endswith("svg")
    assert chart._repr_mimebundle_()["image/svg+xml"] == chart.svg()
    assert fg.Chart("a", "x", "y", {"one": ([1, 2], [3, 4])}).svg() == fg.Chart(
        "a", "x", "y", {"one": ([1, 2], [3, 4])}).svg()


@pytest.mark.parametrize(("values", "ticks"), [
    ([0, 10], [0, 2, 4, 6, 8, 10]),
    ([3, 9.5], [0, 2, 4, 6, 8, 10]),
    ([90, 100], [90, 92, 94, 96, 98, 100]),
    ([5, 5], [2, 3, 4, 5, 6, 7, 8]),
    ([-1, 1], [-1, -0.5, 0, 0.5, 1]),
])
def test_axes_have_round_numbers_that_span_the_values(values, ticks):
    from floatgate._chart import _ticks

    found = _ticks(values)
    assert found == pytest.approx(ticks)
    assert found[0] <= min(values) and found[-1] >= max(values)


def test_no_two_lines_are_alike_and_axes_say_what_they_show():
    lines = {f"line {index}": (["stock", "fast"], [120_000, 180_000 + index])
             for index in range(20)}
    chart = fg.Chart("rates", "format", "requests a second", lines)
    root = xml.fromstring(chart.svg())
    paths = [it for it in root.iter("{http://www.w3.org/2000/svg}path")
             if it.get("stroke-width") == "2"]
    assert len({(it.get("stroke"), it.get("stroke-dasharray")) for it in paths}) == 20
    texts = [it.text for it in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"stock", "fast", "180,000", "format", "requests a second"} <= set(texts)
    with pytest.raises(fg.Error, match="36 lines"):
        fg.Chart("many", "x", "y", {str(it): ([1, 2], [it, it]) for it in range(36)}).svg()


def test_what_is_no_line_is_refused():
    with pytest.raises(fg.Error, match="has no points"):
        fg.Chart("empty", "x", "y", {"one": ([], [])})
    with pytest.raises(fg.Error, match="2 x and 1 y"):
        fg.Chart("uneven", "x", "y", {"one": ([1, 2], [3])})
    gaps = fg.Chart("gaps", "x", "y", {"one": ([1, 2, 3], [1, None, float("nan")])})
    assert gaps.svg().count("<circle") == 1
