"""`lockstep report`: the page of a real run and of a recorded one, its error messages, and a browser that draws it."""
import html
import html.parser
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from run_events import events_of  # noqa: E402  pylint: disable=wrong-import-position

LOCKSTEP = os.environ["LOCKSTEP"]
RECORDED = pathlib.Path(__file__).resolve().parents[1] / "balance" / "report" / "events.jsonl"
VOID = {"meta", "line", "circle", "path", "br", "img"}
CHROMIUM = shutil.which("chromium")


class Page(html.parser.HTMLParser):
    """Rejects unclosed tags; collects texts and everything that a page could fetch."""
    def __init__(self, text):
        super().__init__()
        self.open, self.texts, self.fetched, self.counts = [], [], [], {}
        self.feed(text)
        if self.open:
            raise ValueError(f"not closed: {self.open}")

    def handle_starttag(self, tag, attrs):
        self.counts[tag] = self.counts.get(tag, 0) + 1
        self.fetched += [value for name, value in attrs if name in ("src", "href", "srcset", "data")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.counts[tag] = self.counts.get(tag, 0) + 1

    def handle_endtag(self, tag):
        if self.open.pop() != tag:
            raise ValueError(f"</{tag}> closes another")

    def handle_data(self, data):
        self.texts.append(data)


def run(*words):
    return subprocess.run([LOCKSTEP, *map(str, words)], capture_output=True, text=True, check=False)


def colors(png):
    """How many bytes of the picture differ from the preceding byte: 0 on an empty page."""
    data, at, packed = png.read_bytes(), 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        packed += data[at + 8:at + 8 + size] if kind == b"IDAT" else b""
        at += 12 + size
    pixels = zlib.decompress(packed)
    return sum(a != b for a, b in zip(pixels[::97], pixels[1::97]))


class Figure:
    """A chart: its lines as lists of points on the page, each with its classes, and its rings."""
    def __init__(self, page, title):
        text = re.search(rf"<figure><figcaption>{re.escape(title)}<.*?</figure>", page, re.DOTALL)[0]
        self.caption = re.search("<figcaption>(.*?)</figcaption>", text)[1]
        self.lines = [(classes.split(), [tuple(map(float, point.split(","))) for point in re.split("[ML]", path)[1:]])
                      for classes, path in re.findall(r'<path class="line ([^"]*)" d="([^"]*)"/>', text)]
        self.rings = [(color, (float(x), float(y))) for color, x, y in
                      re.findall(r'<circle class="ring (s\d)" cx="([^"]*)" cy="([^"]*)"', text)]

    def named(self, color):
        return [points for classes, points in self.lines if classes == [color]]


class Report(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def page_of(self, folder):
        done = run("report", folder)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, f"{folder}/report.html\n", ""))
        return (folder / "report.html").read_text()

    def test_a_real_run(self):
        done = run("train", "--ranks", "2", "steps=12", "evaluate.every=4 steps", "--profile", "4-9",
                   f"run_directory={self.folder}")
        self.assertEqual(done.returncode, 0, done.stderr)
        verdict = run("trace", "merge", self.folder).stdout.splitlines()[1]
        text = self.page_of(self.folder)
        page = Page(text)
        self.assertEqual(page.fetched, [])
        self.assertNotIn("script", page.counts)
        self.assertIn("12 / 12", page.texts)
        self.assertIn("What the steps waited for", page.texts)
        self.assertIn(f"{verdict}\n", page.texts)
        job = [text for text in page.texts if text.startswith("{")][0]  # from the newest checkpoint
        self.assertEqual(json.loads(job)["job"]["steps"], 12)
        for title in ("Loss", "Metrics", "Learning rate", "Seconds per micro-batch"):
            self.assertIn(title, page.texts)
        self.assertFalse([text for text in page.texts if "fp16" in text or "skipped" in text])
        sha = [line for line in done.stderr.splitlines() if "sha256" in line][0].split()[-1]
        self.assertIn(f"parameters sha256: {sha}", page.texts)

    def test_waiting_for_data_is_one_figure(self):
        """Of a run whose input is slow: what its events say, also by the lines of progress, on the page and in the timeline.
        Prometheus is compared in tests/train/run_metrics_test.cpp."""
        done = run("train", "--ranks", "2", "--profile", "11-40", f"run_directory={self.folder}", "steps=40", "batch_size=64",
                   "micro_batches=8", "threads=2", "evaluate=never", "balance=equal", "data.train.digits.count=256", "data.cache=none",
                   "data.threads=1", "data.depth=1", "data.augment=[{resized_crop: {size: 64}},{rotate: {degrees: 30}}]",
                   "data.prepare=[{resize: {size: 64}}]", "model.layers=[flatten,{linear: {features: 10}}]")
        self.assertEqual(done.returncode, 0, done.stderr)
        steps, end = events_of(self.folder, "step"), events_of(self.folder, "end")[-1]
        waits = [step["data_wait_seconds"] for step in steps]
        self.assertEqual(len(waits), 40)
        self.assertGreater(sum(waits), 0.1 * steps[-1]["seconds"])
        self.assertAlmostEqual(end["phases"]["data_wait"], sum(waits), places=5)
        self.assertAlmostEqual(end["data_wait_seconds_by_rank"][0], sum(waits), places=5)

        spans = json.loads((self.folder / "trace" / "rank-0.json").read_text())["traceEvents"]
        of_workers = sum(span["args"]["seconds"] for span in spans if span["name"] == "data wait")
        self.assertAlmostEqual(of_workers / 2, sum(waits[10:]), delta=0.01 * sum(waits) + 1e-3)

        shown = [(int(step), int(share)) for step, share in re.findall(r"step +(\d+).*data wait (\d+) %", done.stderr)]
        self.assertEqual([step for step, _ in shown[-10:]], list(range(4, 41, 4)))
        seconds = [steps[4 * i - 1]["seconds"] - (steps[4 * i - 5]["seconds"] if i > 1 else steps[0]["seconds"])
                   for i in range(1, 11)]
        told = sum(share / 100 * of for (_, share), of in zip(shown[-10:], seconds))
        self.assertAlmostEqual(told, sum(waits[1:]), delta=0.05 * sum(seconds))

        text = self.page_of(self.folder)
        self.assertIn(f"data wait {sum(waits):.3g} s", " ".join(Page(text).texts))
        points = Figure(text, "Waiting for data, seconds per step").lines[0][1]
        self.assertEqual(len(points), 40)
        drawn = sorted((wait, y) for wait, (_, y) in zip(waits, points) if y > 12.1)  # those that are not off the chart
        self.assertGreater(len(drawn), 30)
        (low, bottom), (high, top) = drawn[0], drawn[-1]
        for wait, y in drawn:
            self.assertAlmostEqual(y, bottom + (top - bottom) * (wait - low) / (high - low), delta=0.2)

    def test_what_an_evaluation_has_found(self):
        """Classes, confusions and the worst samples, the same on any number of ranks; each image is in the page."""
        done = run("train", "steps=20", "evaluate=never", "telemetry.tensorboard.enabled=true",
                   f"run_directory={self.folder}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("The worst samples", self.page_of(self.folder))
        path, kept = self.folder / "evaluations" / "validation.json", []
        for ranks in "1", "2":
            done = run("eval", self.folder, "--details", "--worst", "5", "--ranks", ranks)
            self.assertEqual(done.returncode, 0, done.stderr)
            kept.append(path.read_text())
        self.assertEqual(kept[0], kept[1])
        self.assertTrue(done.stdout.endswith(f"wrote {path}; lockstep report {self.folder} shows it\n"), done.stdout)
        details = json.loads(kept[0])
        self.assertEqual([row["name"] for row in details["rows"]], [str(digit) for digit in range(10)])
        right = sum(count for actual, predicted, count in details["confusions"] if actual == predicted)
        metrics = json.loads(run("eval", self.folder, "--log", "json").stdout)["metrics"]
        self.assertEqual(right / details["samples"], metrics["accuracy"])
        losses = [sample["loss"] for sample in details["worst"]]
        self.assertEqual((losses, len(losses)), (sorted(losses, reverse=True), 5))
        page = Page(self.page_of(self.folder))
        self.assertEqual([image[:22] for image in page.fetched], ["data:image/png;base64,"] * 5)
        self.assertIn(f"Predictions of {details['samples']:,} validation samples, after step 20", page.texts)
        self.assertEqual(page.counts["rect"], len(details["confusions"]))
        boards = list((self.folder / "tensorboard" / "validation").iterdir())
        self.assertIn(b"view/confusion/validation", boards[0].read_bytes())

    def test_a_run_in_fp16(self):
        """The initial scale is so high that gradients overflow."""
        done = run("train", "steps=14", "evaluate=never", f"run_directory={self.folder}",
                   "precision={fp16: {initial_scale: 16777216}}")
        self.assertEqual(done.returncode, 0, done.stderr)
        events = map(json.loads, (self.folder / "events.jsonl").read_text().splitlines())
        skipped = [event["skipped"] for event in events if event["event"] == "step"]
        self.assertEqual(len(skipped), 14)
        self.assertIn(sum(skipped), range(1, 14))
        page = Page(self.page_of(self.folder))
        at = page.texts.index("skipped updates, whose gradient overflowed")
        self.assertEqual(page.texts[at - 1], str(sum(skipped)))
        self.assertIn("Loss scale (fp16)", page.texts)

    def test_two_runs_side_by_side(self):
        """The better of two is marked, what their jobs say differently is told, and names and places are not."""
        for name, rate in (("slow", "0.0001"), ("fast", "0.002")):
            done = run("train", "steps=12", "evaluate.every=4 steps", f"learning_rate={rate}",
                       f"run_directory={self.folder}/{name}")
            self.assertEqual(done.returncode, 0, done.stderr)
        output = self.folder / "both.html"
        done = run("report", self.folder / "slow", self.folder / "fast", "--output", output)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, f"{output}\n", ""))
        text = output.read_text()
        page = Page(text)
        self.assertEqual(page.fetched, [])
        self.assertIn("2 runs", page.texts)
        rows = dict(re.findall(r"<tr><th>([^<]+)</th>((?:<td.*?</td>)+)", text))
        best = [json.loads(line)["loss"] for line in (self.folder / "fast" / "events.jsonl").read_text().splitlines()
                if json.loads(line)["event"] == "eval"]
        cells = re.findall(r'<td class="n( best)?">([^<]*)</td>', rows["best validation loss"])
        self.assertEqual([mark for mark, _ in cells], ["", " best"])
        self.assertEqual(cells[1][1], f"{min(best):.4f} (step {4 * (best.index(min(best)) + 1)})")
        self.assertEqual(re.findall(r">([^<]*)</td>", rows["learning_rate.peak"]), ["0.0001", "0.002"])
        self.assertNotIn("run_directory", rows)
        self.assertNotIn("seed", rows)
        for title in ("Loss in training", "Validation accuracy"):
            self.assertIn(title, page.texts)

    def made_up(self, events, **start):
        """The page of events."""
        lines = [{"event": "start", "job": "made up", "ranks": 1, "time": 1, **start}, *events]
        (self.folder / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        return self.page_of(self.folder)

    def test_the_best_step_is_marked(self):
        """In a tile, unless it is the last evaluation, and by a ring on the curve."""
        evals = [{"event": "eval", "step": step, "set": "validation", "loss": loss, "metrics": {"accuracy": accuracy}}
                 for step, loss, accuracy in ((4, 0.9, 0.5), (8, 0.3, 0.6), (12, 0.5, 0.9))]
        steps = [{"event": "step", "step": step, "loss": 1 / step, "learning_rate": 0.1} for step in range(1, 13)]
        text = self.made_up(steps + evals, higher_is_better="accuracy")
        texts = Page(text).texts
        self.assertEqual(texts[texts.index("best validation loss, at step 8") - 1], "0.3000")
        self.assertEqual(texts[texts.index("validation loss") - 1], "0.5000")
        self.assertFalse([word for word in texts if word.startswith("best validation accuracy")])  # the last one is
        for title, best in (("Loss", 1), ("Metrics", 2)):
            figure = Figure(text, title)
            color = "s1" if title == "Loss" else "s0"
            self.assertEqual(figure.rings, [(color, figure.named(color)[0][best])])
            self.assertIn("ringed: the best", figure.caption)
        once = self.made_up(steps + evals[:1])
        self.assertEqual(Figure(once, "Loss").rings, [])
        self.assertNotIn("ringed", once)

    def test_long_curves_are_smoothed(self):
        """Of a loss that goes up and down, the mean of eleven steps hardly does; both are drawn."""
        def figure(count):
            return Figure(self.made_up([{"event": "step", "step": step, "loss": 2 + step % 2, "learning_rate": 0.1}
                                        for step in range(1, count + 1)]), "Loss")

        def height(points):
            return max(y for _, y in points) - min(y for _, y in points)

        lines = figure(200).lines
        self.assertEqual([classes for classes, _ in lines], [["s0", "faint"], ["s0"]])
        whole, smoothed = (points for _, points in lines)
        self.assertEqual([len(whole), len(smoothed)], [200, 200])
        self.assertEqual([x for x, _ in smoothed], [x for x, _ in whole])
        self.assertAlmostEqual(height(smoothed[5:-5]) / height(whole), 1 / 11, delta=0.005)
        self.assertEqual((smoothed[0], smoothed[-1]), (whole[0], whole[-1]))  # nothing is beside them
        self.assertEqual([classes for classes, _ in figure(80).lines], [["s0"]])

    def test_waiting_for_data_is_drawn_where_there_is_some(self):
        for waits in (0, 0.25):
            text = self.made_up([{"event": "step", "step": step, "loss": 1, "data_wait_seconds": waits * (step == 2)}
                                 for step in (1, 2, 3)])
            self.assertEqual("Waiting for data, seconds per step" in Page(text).texts, waits > 0)
        low, high, again = (y for _, y in Figure(text, "Waiting for data, seconds per step").lines[0][1])
        self.assertLess(high, low)  # y counts from above
        self.assertEqual(low, again)

    def test_an_outlier_does_not_flatten_the_rest(self):
        done = run("train", "steps=40", "evaluate=never", f"run_directory={self.folder}")
        self.assertEqual(done.returncode, 0, done.stderr)
        events = self.folder / "events.jsonl"
        lines = [json.loads(line) for line in events.read_text().splitlines()]
        [line for line in lines if line["event"] == "step"][20]["loss"] = 1e6
        events.write_text("".join(json.dumps(line) + "\n" for line in lines))
        page = Page(self.page_of(self.folder))
        self.assertIn("some are off the chart: up to 1,000,000", page.texts)

    def test_ranks_and_moves(self):
        shutil.copy(RECORDED, self.folder)
        page = Page(self.page_of(self.folder))
        for title in ("Micro-batches of each rank, since the first move", "Ranks and balance", "rank 1"):
            self.assertIn(title, page.texts)
        # 3 and 5 micro-batches, from step 5 on 4 and 4, until step 8: a right angle at each move.
        figure = Figure((self.folder / "report.html").read_text(), "Micro-batches of each rank, since the first move")
        for color, grows in (("s0", True), ("s1", False)):
            (first, before), (move, also), (same, after), (last, end) = figure.named(color)[0]
            self.assertEqual((move, also, after), (same, before, end))
            self.assertAlmostEqual((move - first) / (last - first), 5 / 8, places=3)
            self.assertEqual(after < before, grows)

    def test_parts_of_a_model(self):
        shutil.copy(RECORDED.parents[1] / "report_parts" / "events.jsonl", self.folder)
        page = Page(self.page_of(self.folder))
        texts = [text for text in page.texts if text.strip()]
        for part, row in (("0", "0"), ("0", "1"), ("1", "2")):
            at = [i for i, text in enumerate(texts) if text == row and texts[i + 1] == part]
            self.assertTrue(at, f"rank {row}, part {part}")
        self.assertEqual(texts[texts.index("rank") + 1], "part")
        self.assertTrue([text for text in texts if "part 1 on rank 2: conv2 to metric.accuracy" in text])

    def test_a_constant_is_drawn_between_zero_and_twice_itself(self):
        for value, ticks in ((0.1, ["0", "0.05", "0.1", "0.15", "0.2"]), (-2, ["-4", "-3", "-2", "-1", "0"]),
                             (0, ["0", "0.2", "0.4", "0.6", "0.8", "1"])):
            steps = [{"event": "step", "step": step, "learning_rate": value} for step in (1, 2, 3)]
            events = [{"event": "start", "job": "constant", "ranks": 1, "time": 1}, *steps]
            (self.folder / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
            page = Page(self.page_of(self.folder))
            begin = page.texts.index("Learning rate") + 1
            self.assertEqual([text for text in page.texts[begin:] if text.strip()][:len(ticks)], ticks, value)

    def test_words_of_a_run_are_no_html(self):
        (self.folder / "events.jsonl").write_text('{"event":"start","job":"<script>x</script>&","ranks":1,"time":1}\n')
        page = Page(self.page_of(self.folder))
        self.assertNotIn("script", page.counts)
        self.assertIn("<script>x</script>&", page.texts)

    def made_up_sweep(self, trials):
        (self.folder / "journal.jsonl").write_text('{"record":"sweep"}\n')
        (self.folder / "trials.json").write_text(json.dumps(
            {"sweep": "<b>search</b>", "method": "random", "metric": "accuracy", "direction": "maximize", "best": 7,
             "trials": trials}))

    def test_a_sweep(self):
        """Eight trials whose accuracy depends on the optimizer alone, and one that failed."""
        trials = [{"trial": i, "state": "done", "value": (0.9 if i % 2 else 0.4) + i / 1000, "steps": 1000, "message": "",
                   "settings": {"optimizer": "adam" if i % 2 else "sgd", "learning_rate": 10 ** (-i // 2)},
                   "device_seconds": 30} for i in range(8)]
        trials.append({"trial": 8, "state": "failed", "value": None, "steps": 3, "message": "the <loss> is nan",
                       "settings": {"optimizer": "sgd", "learning_rate": 9}, "device_seconds": 1})
        self.made_up_sweep(trials)
        page = Page(self.page_of(self.folder))
        texts = [text for text in page.texts if text.strip()]
        self.assertEqual(page.fetched, [])
        self.assertIn("<b>search</b>", texts)
        self.assertEqual([texts[texts.index(word) - 1] for word in ("trials", "done", "failed", "of devices")],
                         ["9", "8", "1", "4:01"])
        self.assertEqual(texts[texts.index("best accuracy, of trial 7") - 1], "0.9070")
        self.assertEqual(page.counts["path"], 8)
        # Ranks 1 to 4 and 5 to 8: 42 in all, 10 within, of which 10 / 6 would be noise beside the 32 between.
        self.assertEqual(texts[texts.index("What mattered") + 1:][:2], ["optimizer", "72 %"])
        self.assertIn("failed: the <loss> is nan", texts)

    def test_a_sweep_that_has_just_begun(self):
        self.made_up_sweep([])
        self.assertNotIn("What mattered", Page(self.page_of(self.folder)).texts)
        (self.folder / "trials.json").unlink()
        done = run("report", self.folder)
        self.assertEqual((done.returncode, done.stderr), (
            65, f"lockstep: {self.folder}/trials.json: expected the trials of a sweep, found no such file\n"))

    def test_no_run(self):
        done = run("report", self.folder)
        self.assertEqual((done.returncode, done.stderr), (
            64, f"lockstep: {self.folder}/events.jsonl: expected the events of a run, found none; name a run directory of "
                "a run that has started\n"))

    def test_no_place_for_the_page(self):
        shutil.copy(RECORDED, self.folder)
        done = run("report", self.folder, "--output", "/nowhere/at/all.html")
        self.assertEqual((done.returncode, done.stderr), (
            73, "lockstep: /nowhere/at/all.html: cannot write the report: No such file or directory\n"))

    def browse(self, *flags, page):
        """What Chromium prints for a page."""
        done = subprocess.run(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync",
             f"--user-data-dir={self.folder}/profile", "--hide-scrollbars", *flags, f"file://{page}"],
            capture_output=True, text=True, check=False, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def measured(self, expression, *flags):
        """The value of a JavaScript expression on the page, which has no script itself."""
        page = self.folder / "measured.html"
        page.write_text((self.folder / "report.html").read_text().replace(
            "</body>", f"<script>document.title = JSON.stringify({expression})</script></body>"))
        title = re.search("<title>(.*?)</title>", self.browse("--dump-dom", *flags, page=page))[1]
        return json.loads(html.unescape(title))

    @unittest.skipUnless(CHROMIUM, "chromium is not installed")
    def test_a_browser_draws_it(self):
        shutil.copy(RECORDED, self.folder)
        self.page_of(self.folder)
        picture = self.folder / "page.png"
        self.browse("--window-size=1280,1600", f"--screenshot={picture}", page=self.folder / "report.html")
        self.assertGreater(colors(picture), 1000)

    @unittest.skipUnless(CHROMIUM, "chromium is not installed")
    def test_it_is_light_or_dark_as_the_reader_s_system(self):
        shutil.copy(RECORDED, self.folder)
        self.page_of(self.folder)
        paper = "getComputedStyle(document.body).backgroundColor"
        self.assertEqual(self.measured(paper), "rgb(251, 250, 248)")
        self.assertEqual(self.measured(paper, "--blink-settings=preferredColorScheme=0"), "rgb(20, 22, 26)")

    @unittest.skipUnless(CHROMIUM, "chromium is not installed")
    def test_nothing_is_cut_off_where_it_is_narrow(self):
        shutil.copy(RECORDED, self.folder)
        self.page_of(self.folder)
        width, page = self.measured("[innerWidth, document.documentElement.scrollWidth]", "--window-size=500,900")
        self.assertEqual(width, 500)
        self.assertLessEqual(page, width)
        beyond = self.measured("[...document.querySelectorAll('figure, .tile, pre')].filter("
                               "e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent.slice(0, 40))",
                               "--window-size=500,900")
        self.assertEqual(beyond, [])


if __name__ == "__main__":
    sys.exit(unittest.main())
