#!/usr/bin/env python3
"""`lockstep data tokenize` beside Hugging Face's `tokenizers`: token for token, and back. No trained tokenizer is at
hand, so the library trains some of each kind here; the texts are Shakespeare, if there, and one of odd Unicode."""
import array
import json
import os
import pathlib
import pty
import random
import signal
import subprocess
import tempfile
import unicodedata
import unittest

import families
import tokenizers
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

PROGRAM = os.environ["LOCKSTEP"]
SHAKESPEARE = pathlib.Path(os.environ.get("LOCKSTEP_DATA", "/nowhere")) / "tinyshakespeare.txt"
LLAMA_3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
           r"\s+(?!\S)|\s+")
ENGLISH = ("First Citizen:\nBefore we proceed any further, hear me speak.\n\nAll:\nSpeak, speak.\n"
           "You're all resolved rather to die than to famish? We'll have corn at our own price.\n") * 20


def odd_text():
    """Every code point below U+3000, letters and digits of all scripts, spaces of every kind in runs, contractions,
    combining marks, emoji with joiners, controls, added tokens and what looks like them."""
    chance = random.Random(7)
    pieces = ["'s 'S 'T 'RE 'LL 'ſ can't CAN'T we’ll", "<|endoftext|>", "<|endoftext|", " <mask> ", "\u00a0<mask>\t x",
              "e\u0301\u0327", "👩‍👩‍👧‍👦🏽", "\U0001F1E9\U0001F1EA", "½⅓①Ⅳ१२३٤٥٦", "\u200b\u200d\ufeff", "\u180e", "\u0085", "▁", "<0x41>",
              "   \n\n\t ", "\r\n\r\n", "x" * 300, " " * 300, "1" * 100, "\n" * 70, "日本語テキスト", "한국어", "ﬁ", "ǅ", "\x00\x1f\x7f"]
    pieces += [chr(c) for c in range(1, 0x3000) if unicodedata.category(chr(c)) not in ("Cn", "Cs")]
    pieces += [chr(chance.randrange(0x3000, 0x20000)) for _ in range(3000)]
    pieces = [p for p in pieces if all(unicodedata.category(c) not in ("Cn", "Cs", "Co") for c in p)]
    pieces += ["\ue000", "\U0010ffff", "\u0378"]
    words = []
    for _ in range(3):
        chance.shuffle(pieces)
        words += [p + chance.choice(["", "", " ", "  ", "\n"]) for p in pieces]
    return "".join(words)


def trained(tokenizer, special, size=1200, alphabet=()):
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=special, initial_alphabet=list(alphabet),
                                  show_progress=False)
    tokenizer.train_from_iterator([ENGLISH, odd_text()[:30000]], trainer)
    return tokenizer


def gpt2():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return trained(tokenizer, ["<|endoftext|>"], alphabet=pre_tokenizers.ByteLevel.alphabet())


def roberta():
    tokenizer = gpt2()
    tokenizer.add_special_tokens(["<s>", "</s>", tokenizers.AddedToken("<mask>", lstrip=True, special=True)])
    tokenizer.add_tokens([tokenizers.AddedToken("Citizen", normalized=True)])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", tokenizer.token_to_id("</s>")),
                                                            ("<s>", tokenizer.token_to_id("<s>")))
    return tokenizer


def llama3():
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(LLAMA_3), "isolated", False),
         pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trained(tokenizer, ["<|begin_of_text|>", "<|endoftext|>"], alphabet=pre_tokenizers.ByteLevel.alphabet())
    start = ("<|begin_of_text|>", tokenizer.token_to_id("<|begin_of_text|>"))
    tokenizer.post_processor = processors.Sequence(
        [processors.ByteLevel(trim_offsets=False),
         processors.TemplateProcessing(single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A $B",
                                       special_tokens=[start])])
    return tokenizer


def llama2():
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    trainer = trainers.BpeTrainer(vocab_size=900, show_progress=False,
                                  special_tokens=["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)])
    tokenizer.train_from_iterator((line for line in ENGLISH.splitlines() * 3), trainer)
    # The bytes are tokens like others, not ones that text is searched for.
    described = json.loads(tokenizer.to_str())
    described["added_tokens"] = described["added_tokens"][:3]
    return Tokenizer.from_str(json.dumps(described))


KINDS = {"gpt2": gpt2, "roberta": roberta, "llama3": llama3, "llama2": llama2}


class Tokens(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.kinds = {}
        for name, make in KINDS.items():
            cls.kinds[name] = make()
            cls.kinds[name].save(str(cls.folder / f"{name}.json"))

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def run_program(self, *words, code=0):
        result = subprocess.run([PROGRAM, "data", *map(str, words)], capture_output=True, timeout=300, check=False,
                                stdin=subprocess.DEVNULL)
        self.assertEqual(result.returncode, code, result.stderr)
        return result

    def tokenized(self, text, tokenizer, *words):
        source, out = self.folder / "text.txt", self.folder / "tokens.bin"
        source.write_bytes(text.encode())
        out.unlink(missing_ok=True)
        self.run_program("tokenize", source, out, "--tokenizer", tokenizer, *words)
        return array.array("H", out.read_bytes()), out

    def compare(self, name, text):
        real = self.kinds[name]
        tokens, out = self.tokenized(text, self.folder / f"{name}.json", "--threads", 3)
        expected = real.encode(text).ids
        if list(tokens) != expected:
            at = next(i for i, (a, b) in enumerate(zip([*tokens, -1], [*expected, -2])) if a != b)
            before = real.decode(expected[max(0, at - 5):at], skip_special_tokens=False)
            self.fail(f"{name}: token {at} after {before!r}: {[real.id_to_token(t) for t in tokens[at:at + 5]]}, "
                      f"expected {[real.id_to_token(t) for t in expected[at:at + 5]]}")
        back = self.run_program("detokenize", out).stdout.decode()
        self.assertEqual(back, real.decode(expected))
        return back

    def test_odd_unicode(self):
        for name in KINDS:
            with self.subTest(name):
                self.compare(name, odd_text())

    def test_published_families(self):
        text = odd_text() + ENGLISH
        for name, make in families.PUBLISHED.items():
            with self.subTest(name):
                few = 4000 if name in ("T5", "XLM-R", "ALBERT") else 30000
                self.kinds[name] = make([ENGLISH, odd_text()[:few]])
                self.kinds[name].save(str(self.folder / f"{name}.json"))
                self.kinds[name].no_truncation()  # which lockstep leaves to the context, as it does padding
                self.kinds[name].no_padding()
                for some in [text, " a <mask> b", "  Speak, speak.\r\n\r\nword words word\n[MASK] ", "e\u0301" * 9]:
                    self.compare(name, some)

    def test_a_model_reads_them(self):
        """From texts to a prediction, with what BERT and T5 put around a text."""
        rows = [f"{'Speak speak' if i % 2 else 'We are resolved'} {i},{'yes' if i % 2 else 'no'}" for i in range(60)]
        (self.folder / "texts.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
        (self.folder / "new.csv").write_text("text\nspeak we speak\n")
        for name in ("BERT", "T5"):
            tokenizer = families.PUBLISHED[name]([ENGLISH, odd_text()[:4000]])
            tokenizer.save(str(self.folder / "job.json"))
            job = self.folder / "job.yaml"
            job.write_text(f"""
job:
  name: {name.lower()}
  model:
    layers:
      - {{embedding: {{vocabulary: {tokenizer.get_vocab_size()}, width: 8}}, inputs: tokens}}
      - {{mean: {{axis: 1, inputs: [previous, length]}}}}
      - {{linear: 2}}
  data:
    train: {{texts: {{path: texts.csv, tokenizer: job.json, context: 12}}}}
  batch_size: 10
  epochs: 20
  loss: cross_entropy
  metrics: [accuracy]
  optimizer: adam
  learning_rate: 0.05
""")
            with self.subTest(name):
                for words in (["train", job], ["predict", f"runs/{name.lower()}", "new.csv"]):
                    result = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, timeout=300, check=False,
                                            cwd=self.folder, stdin=subprocess.DEVNULL, text=True)
                    self.assertEqual(result.returncode, 0, result.stderr)
                self.assertRegex(result.stdout, r"0\.9[0-9]+  yes")

    def test_any_combination(self):
        """Tokenizers whose parts are drawn; what lockstep refuses it refuses by name."""
        chance = random.Random(3)
        text = odd_text()[:20000] + ENGLISH[:500]
        for i in range(40):
            tokenizer = families.drawn(chance, [ENGLISH, text[:8000]])
            with self.subTest(i=i):
                self.kinds["drawn"] = tokenizer
                tokenizer.save(str(self.folder / "drawn.json"))
                self.compare("drawn", text)
                self.compare("drawn", "  ``Speak'', speak.\r\n\r\n 12345 word words word\n[MASK] \u2581e\u0301")

    def test_text_returns(self):
        text = odd_text().replace("<|endoftext|>", "")
        self.assertEqual(self.compare("gpt2", text), text)
        text = text.replace("▁", "")  # which is a space to this one
        self.assertEqual(self.compare("llama2", text), text)

    @unittest.skipUnless(SHAKESPEARE.exists(), "tinyshakespeare.txt is not in LOCKSTEP_DATA")
    def test_shakespeare(self):
        text = SHAKESPEARE.read_text()
        for name in KINDS:
            with self.subTest(name):
                self.assertEqual(self.compare(name, text), self.kinds[name].decode(self.kinds[name].encode(text).ids))

    def test_gpt2s_files(self):
        folder = self.folder / "gpt2"
        folder.mkdir()
        self.kinds["gpt2"].model.save(str(folder))
        text = odd_text()
        tokens, _ = self.tokenized(text, folder)
        self.assertEqual(list(tokens), self.kinds["gpt2"].encode(text).ids)

    def test_short_texts(self):
        for name, text in [(n, t) for n in KINDS for t in ("a", " ", "  a", "\n", "<|endoftext|>", " a <mask> b", "é" * 50)]:
            with self.subTest(f"{name}: {text!r}"):
                self.compare(name, text)

    def test_wide_tokens(self):
        """Beyond 65,536 tokens a token takes four bytes."""
        described = json.loads(self.kinds["gpt2"].to_str())
        described["added_tokens"].append({"id": 70000, "content": "<|far|>", "single_word": False, "lstrip": False,
                                          "rstrip": False, "normalized": False, "special": False})
        path = self.folder / "wide.json"
        path.write_text(json.dumps(described))
        _, out = self.tokenized("hello<|far|>", path)
        self.assertEqual(array.array("I", out.read_bytes())[-1], 70000)
        self.assertEqual(self.run_program("detokenize", out).stdout, b"hello<|far|>")
        info = self.run_program("info", f"tokens={out}", "context=2").stdout.decode()
        self.assertIn("tokens of 32 bits", info)

    def test_progress_is_shown_on_a_terminal(self):
        source, out = self.folder / "megabytes.txt", self.folder / "megabytes.bin"
        source.write_text(ENGLISH * (40_000_000 // len(ENGLISH)))
        words = [PROGRAM, "data", "tokenize", str(source), str(out), "--tokenizer", str(self.folder / "gpt2.json")]
        ours, terminal = pty.openpty()
        result = subprocess.run(words, stdout=subprocess.PIPE, stderr=terminal, timeout=300, check=True)
        os.close(terminal)
        shown = os.read(ours, 65536).decode()
        os.close(ours)
        size = round(source.stat().st_size / 1e6)
        self.assertRegex(shown, rf"^\r\d+ of {size} MB\r{size} of {size} MB\r\n$")
        self.assertTrue(result.stdout.startswith(f"wrote {out}: ".encode()))
        out.unlink()
        self.assertEqual(self.run_program("tokenize", source, out, "--tokenizer", self.folder / "gpt2.json").stderr, b"")

    def test_killed_and_gone_on(self):
        text = odd_text() * 60
        source, out = self.folder / "long.txt", self.folder / "long.bin"
        source.write_bytes(text.encode())
        whole, killed = self.folder / "whole.bin", 0
        self.run_program("tokenize", source, whole, "--tokenizer", self.folder / "gpt2.json")
        while not out.exists():
            process = subprocess.Popen([PROGRAM, "data", "tokenize", source, out, "--tokenizer",
                                        self.folder / "gpt2.json", "--threads", "1"], stdout=subprocess.DEVNULL)
            try:
                process.wait(timeout=0.3 * (killed + 1))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
                killed += 1
        self.assertGreater(killed, 0)
        self.assertEqual(out.read_bytes(), whole.read_bytes())


if __name__ == "__main__":
    unittest.main()
