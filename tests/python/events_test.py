#!/usr/bin/env python3
"""Lines of events that no run of a test writes: damaged ones, numbers that are not finite, and those that lack fields."""
import json
import math
import re
import unittest

from reading import ROOT, InFolder, reader


class Events(InFolder):
    def write(self, *lines):
        (self.own / "events.jsonl").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        return self.own / "events.jsonl"

    def test_numbers_that_are_not_finite(self):
        event = reader.parse_event('{"event":"step","step":1,"loss":"nan","learning_rate":"-inf","metrics":{"accuracy":"inf"},'
                                   '"micro_batch_seconds":{"0":1,"10":2.5}}')
        self.assertTrue(math.isnan(event["loss"]))
        self.assertEqual((event["learning_rate"], event["metrics"]), (-math.inf, {"accuracy": math.inf}))
        self.assertEqual(event["micro_batch_seconds"], {0: 1.0, 10: 2.5})
        self.assertEqual(reader.parse_event('{"event":"start","job":"nan"}')["job"], "nan")

    def test_what_this_version_does_not_know(self):
        later = '{"event":"dream","of":"sheep"}'
        self.assertEqual(reader.parse_event(later), json.loads(later))
        self.assertEqual(reader.parse_event('{"event":"warning","message":"m","more":"nan"}')["more"], "nan")

    def test_damaged_lines_are_left_out_and_counted(self):
        path = self.write('{"event":"warning","message":"a"}', '{"event":"step","step":"two"}', "torn", "[]",
                          '{"event":"warning","message":"b"}')
        log = reader.EventLog(path)
        self.assertEqual([event["message"] for event in log.new()], ["a", "b"])
        self.assertEqual(log.damaged, 3)

    def test_damaged_lines_are_named(self):
        for line, expected, found in (
                ('{"event":"step","step":"two"}', "an integer as 'step' of 'step'", '"two"'),
                ('{"event":"step","step":true}', "an integer as 'step' of 'step'", "true"),
                ('{"event":"step","loss":"much"}', "a number as 'loss' of 'step'", '"much"'),
                ('{"event":"step","micro_batch_seconds":{"first":1}}', "numbers by rank as 'micro_batch_seconds' of 'step'",
                 '{"first": 1}'),
                ('{"event":"warning","message":3}', "a text as 'message' of 'warning'", "3"),
                ("torn", "an event, a JSON object with the key 'event'", "'torn'")):
            with self.subTest(line=line):
                path = self.write('{"event":"warning","message":"a"}', line)
                self.says(reader.DamagedError, f"{path}:2: expected {expected}, found {found}; leave the line out "
                          "(strict=False)", reader.read_events, path, strict=True)

    def test_requests_that_cannot_be_met(self):
        self.says(reader.MissingError, f"{self.own}/events.jsonl: expected the events of a run, found no such file; name a "
                  "run directory; a job with checkpoint: never keeps no events", reader.read_events, self.own)
        path = self.write('{"event":"warning","message":"a"}')
        self.says(reader.MissingError, f"{path}: expected a kind of event ({', '.join(reader.events.KINDS)}), found 'steps'; "
                  "see docs/events.md", reader.read_events, path, "steps")
        log = reader.EventLog(path)
        log.new()
        self.write("{}")
        self.says(reader.DamagedError, f"{path}: expected at least the 34 bytes that were read, found 3; it has been "
                  "replaced: open it anew", log.new)

    def test_a_run_that_lacks_fields(self):
        """And with a last line that is torn."""
        run = reader.open_run(ROOT / "tests/balance/report")
        self.assertEqual(run.training()["step"], list(range(1, 10))[:run.training().height])
        end = list(run.events("end"))[-1]
        self.assertEqual(end["reduce_seconds_by_rank"], {0: 0.05, 1: 0.05})

    def test_what_is_better_is_what_the_page_says(self):
        table = re.findall(r"^\| `(\w+)` \|.*\| (higher|lower) \|$", (ROOT / "docs/losses-and-metrics.md").read_text(),
                           re.MULTILINE)
        self.assertGreaterEqual(len(table), 9)
        for name, better in table:
            self.assertIs(reader.history.HIGHER_IS_BETTER.get(name), better == "higher", name)

    def test_states(self):
        start, end = {"event": "start", "steps": 9}, {"event": "end", "outcome": "stopped early", "steps": 7}
        given_up = {"event": "restart", "reason": "given up", "message": "m", "step": 3}
        launch = {"event": "launch", "attempt": 2}
        for events, locked, state in (([], None, "not started"), ([], True, "running"), ([start], True, "running"),
                                      ([start], False, "unfinished"), ([start, end], False, "stopped early"),
                                      ([start, given_up], False, "given up"), ([start, end, launch], True, "running"),
                                      ([start, end, start], None, "unfinished"),
                                      ([start, end | {"outcome": "already finished"}], None, "done")):
            self.assertEqual(reader.history.status_of(events, locked).state, state)

    def test_the_version_is_the_program_s(self):
        version = re.search(r"project\(lockstep VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
        self.assertEqual(reader.__version__, version)


if __name__ == "__main__":
    unittest.main()
