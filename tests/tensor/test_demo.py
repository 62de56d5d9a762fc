"""`make demo`: the table, the page, the picture."""

import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import pytest

torch = pytest.importorskip("torch")

import stator  # noqa: E402
from stator import _demo_gpt, _demo_page, demo  # noqa: E402


def trained(who, slower=1.0):
    training = demo.Training(who)
    training.take({"event": "ready"})
    for i in range(5):
        training.take({"event": "step", "loss": 3.0 - i / 2, "seconds": slower / (1 + 9 * (i > 0))})
    training.take({"event": "done", "graphs": 1, "guards": 20})
    return training


def trainings():
    return [trained("eager"), trained("dynamo", 3.0), trained("stator", 0.5)]


def test_rows_of_the_table():
    rows = [demo._cells(each, trainings()) for each in trainings()]
    assert rows[1] == ("torch.compile", "3.00 s", "300 ms", "1", "20", "1.0000", "equal", "")
    assert [row[0] for row in rows] == ["eager", "torch.compile", "Stator"]


def test_losses_that_differ_are_said():
    others = trainings()
    others[2].losses[3] += 0.25
    assert demo.apart(others[2], others) == "within 2e-01"


def test_without_a_terminal_each_training_is_a_line(capsys):
    table = demo.Table(trainings())
    for training in trainings():
        table.show(True)
        table.done(training)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4 and "\x1b" not in "".join(lines)


class Tags(HTMLParser):
    """Every tag is closed."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_and_the_picture_are_whole():
    explanation = stator.explain(lambda x: x + 1)(torch.ones(2))
    page = _demo_page.page(trainings(), explanation, "eager", "a <machine>")
    tags = Tags()
    tags.feed(page)
    assert tags.open == [] and "a &lt;machine&gt;" in page and page.count("<polyline") == 3
    picture = ElementTree.fromstring(_demo_page.picture(trainings(), "eager", "a <machine>"))
    assert picture.tag.endswith("svg") and len(list(picture.iter())) > 30


def test_the_problem_has_one_break():
    assert [b.reason for b in demo._problem().breaks] == ["ITEM"]


def test_the_model_is_traced_whole():
    torch.manual_seed(0)
    ((text, following),) = _demo_gpt.batches(1)
    model = _demo_gpt.GPT(len(set(_demo_gpt.TEXT)))
    compiled = stator.compile(model, backend="eager", fullgraph=True)
    assert compiled(text, following).item() == model(text, following).item()


@pytest.mark.full
def test_all_of_it(tmp_path, capsys):
    demo.main(["--steps", "3", "--out", str(tmp_path / "demo.html")])
    out = capsys.readouterr().out
    assert out.count("equal") == 2 and "ITEM" in out
    assert (tmp_path / "demo.html").exists()
