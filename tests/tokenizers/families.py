"""Tokenizers configured as published families are, with small vocabularies that the library trains here."""
import io
import json

import sentencepiece
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers as n, pre_tokenizers as p, processors,
                        trainers)

LLAMA_3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
           r"\s+(?!\S)|\s+")
QWEN = LLAMA_3.replace(r"\p{N}{1,3}", r"\p{N}")
GPT_4O = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
          r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
          r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = [r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
            r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+"""
            r"[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"]
CLIP = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
TRAINERS = {"BPE": trainers.BpeTrainer, "WordPiece": trainers.WordPieceTrainer, "Unigram": trainers.UnigramTrainer,
            "WordLevel": trainers.WordLevelTrainer}
BYTES = [f"<0x{b:02X}>" for b in range(256)]


def charsmap(rule="nmt_nfkc"):
    """SentencePiece's compiled normalization, from a model that it trains."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(["a b c d e f g h i j k l m n o p"] * 10),
                                             model_writer=model, vocab_size=30, hard_vocab_limit=False,
                                             normalization_rule_name=rule, minloglevel=2)
    fields = dict(message(model.getvalue()))
    return dict(message(fields[3]))[2]  # normalizer_spec.precompiled_charsmap


def message(data):
    """The fields of a protocol buffer message: numbers, and bytes or integers."""
    def varint(at):
        value = shift = 0
        while True:
            value |= (data[at] & 127) << shift
            shift, at = shift + 7, at + 1
            if data[at - 1] < 128:
                return value, at
    at = 0
    while at < len(data):
        key, at = varint(at)
        if key & 7 == 2:
            size, at = varint(at)
            yield key >> 3, data[at:at + size]
            at += size
        elif key & 7 == 0:
            value, at = varint(at)
            yield key >> 3, value
        else:
            at += 4 if key & 7 == 5 else 8


def trained(tokenizer, texts, special, size=1200, alphabet=()):
    kind = type(tokenizer.model).__name__
    options = {"vocab_size": size, "special_tokens": special, "show_progress": False}
    if kind == "Unigram":
        options["unk_token"] = "<unk>"
    elif kind != "WordLevel":
        options["initial_alphabet"] = list(alphabet)
    if kind == "BPE" and tokenizer.model.end_of_word_suffix:
        options["end_of_word_suffix"] = tokenizer.model.end_of_word_suffix
    if kind == "BPE" and tokenizer.model.continuing_subword_prefix:
        options["continuing_subword_prefix"] = tokenizer.model.continuing_subword_prefix
    if kind == "WordPiece":
        options["continuing_subword_prefix"] = tokenizer.model.continuing_subword_prefix
    tokenizer.train_from_iterator(texts, TRAINERS[kind](**options))
    return tokenizer


def around(tokenizer, template):
    special = [(word, tokenizer.token_to_id(word)) for word in template.split() if word != "$A"]
    tokenizer.post_processor = processors.TemplateProcessing(single=template, special_tokens=special)
    return tokenizer


def bert(texts, lowercase=True):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = n.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = p.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trained(tokenizer, texts, ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    tokenizer.enable_truncation(128)
    tokenizer.enable_padding(length=128)
    if lowercase:
        return around(tokenizer, "[CLS] $A [SEP]")
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer


def unigram(texts, normalizer, pre_tokenizer, template, special=("<pad>", "</s>", "<unk>")):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.Metaspace()
    return around(trained(tokenizer, texts, list(special), 9000), template)


def t5(texts):
    tokenizer = unigram(texts, n.Precompiled(charsmap()), p.Sequence([p.WhitespaceSplit(), p.Metaspace()]), "$A </s>")
    tokenizer.add_special_tokens([f"<extra_id_{i}>" for i in range(10)])
    return tokenizer


def xlm_roberta(texts):
    return around(unigram(texts, n.Sequence([n.Precompiled(charsmap("nfkc")), n.Replace(Regex(" {2,}"), " ")]), p.Metaspace(),
                          "$A </s>", ("<s>", "<pad>", "</s>", "<unk>", "<mask>")), "<s> $A </s>")


def albert(texts):
    steps = [n.Replace("``", '"'), n.Replace("''", '"'), n.NFKD(), n.StripAccents(), n.Lowercase(),
             n.Precompiled(charsmap("nmt_nfkc_cf"))]
    tokenizer = unigram(texts, n.Sequence(steps), p.Sequence([p.WhitespaceSplit(), p.Metaspace()]), "$A </s>",
                        ("<pad>", "</s>", "<unk>", "[CLS]", "[SEP]"))
    tokenizer.add_special_tokens([AddedToken("[MASK]", lstrip=True, special=True)])
    return around(tokenizer, "[CLS] $A [SEP]")


def byte_level(texts, splits, special=("<|endoftext|>",), normalizer=None, **options):
    tokenizer = Tokenizer(models.BPE(**options))
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = p.Sequence(splits) if len(splits) > 1 else splits[0]
    tokenizer.decoder = decoders.ByteLevel()
    return trained(tokenizer, texts, list(special), alphabet=p.ByteLevel.alphabet())


def split(pattern, behavior="isolated", invert=False):
    return p.Split(Regex(pattern), behavior, invert)


def qwen(texts):
    tokenizer = byte_level(texts, [split(QWEN), p.ByteLevel(add_prefix_space=False, use_regex=False)], normalizer=n.NFC())
    tokenizer.add_tokens([AddedToken("<think>", normalized=False), AddedToken("Citizen", normalized=True)])
    return tokenizer


def gpt_4o(texts):
    return byte_level(texts, [split(GPT_4O), p.ByteLevel(add_prefix_space=False, use_regex=False)], ignore_merges=True)


def claude(texts):
    return byte_level(texts, [p.ByteLevel(add_prefix_space=False)], ["<EOT>", "<META>"], n.NFKC())


def deepseek(texts):
    return byte_level(texts, [split(s) for s in DEEPSEEK] + [p.ByteLevel(add_prefix_space=False, use_regex=False)])


def falcon(texts):
    return byte_level(texts, [p.Punctuation("contiguous"), p.ByteLevel(add_prefix_space=False), p.Digits(False),
                              split("[0-9][0-9][0-9]")])


def starcoder(texts):
    return byte_level(texts, [p.Digits(True), p.ByteLevel(add_prefix_space=False)])


def bart(texts):
    tokenizer = byte_level(texts, [p.ByteLevel(add_prefix_space=True)], ["<s>", "</s>"])
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, rstrip=True, special=True)])
    tokenizer.add_tokens([AddedToken("word", single_word=True), AddedToken("speak", single_word=True, rstrip=True)])
    return around(tokenizer, "<s> $A </s>")


def clip(texts):
    return byte_level(texts, [split(CLIP, "removed", True), p.ByteLevel(add_prefix_space=False)],
                      ["<|startoftext|>", "<|endoftext|>"],
                      n.Sequence([n.NFC(), n.Replace(Regex(r"\s+"), " "), n.Lowercase()]), unk_token="<|endoftext|>",
                      end_of_word_suffix="</w>", continuing_subword_prefix="")


def characters(texts, normalizer, pre_tokenizer, steps):
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    if normalizer:
        tokenizer.normalizer = normalizer
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()] + steps)
    trained(tokenizer, texts, ["<unk>", "<s>", "</s>"] + BYTES, 900)
    # The bytes are tokens like others, not ones that text is searched for.
    described = json.loads(tokenizer.to_str())
    described["added_tokens"] = described["added_tokens"][:3]
    return Tokenizer.from_str(json.dumps(described))


def llama_2(texts):
    return characters(texts, n.Sequence([n.Prepend("▁"), n.Replace(" ", "▁")]), None, [decoders.Strip(" ", 1, 0)])


def llama_2_new(texts):
    return around(characters(texts, None, p.Metaspace(prepend_scheme="first", split=False), [decoders.Strip(" ", 1, 0)]),
                  "<s> $A")


def gemma(texts):
    return around(characters(texts, n.Replace(" ", "▁"), p.Split(" ", "merged_with_previous"), []), "<s> $A")


def gpt_1(texts):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    tokenizer.normalizer = n.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = p.BertPreTokenizer()
    tokenizer.decoder = decoders.BPEDecoder("</w>")
    return trained(tokenizer, texts, ["<unk>"])


def words(texts):
    tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tokenizer.normalizer = n.Sequence([n.Strip(True, True), n.NFD()])
    tokenizer.pre_tokenizer = p.Whitespace()
    return trained(tokenizer, texts, ["<unk>"], 3000)


PUBLISHED = {"BERT": bert, "BERT cased": lambda texts: bert(texts, False), "T5": t5, "XLM-R": xlm_roberta, "ALBERT": albert,
             "Qwen": qwen, "GPT-4o": gpt_4o, "Claude": claude, "DeepSeek": deepseek, "Falcon": falcon,
             "StarCoder": starcoder, "BART": bart, "CLIP": clip, "Llama 2": llama_2, "Llama 2, newer": llama_2_new,
             "Gemma": gemma, "GPT": gpt_1, "words": words}


def drawn(chance, texts):
    """A tokenizer of parts that are drawn by `chance`."""
    def some(parts, most):
        return [make() for make in chance.sample(parts, chance.randrange(most + 1))]
    behavior = chance.choice(["removed", "isolated", "contiguous", "merged_with_previous", "merged_with_next"])
    flag = chance.choice([True, False])
    normal = some([n.NFC, n.NFD, n.NFKC, n.NFKD, n.Lowercase, n.StripAccents, n.Nmt, lambda: n.Strip(flag, not flag),
                   lambda: n.Prepend("▁"), lambda: n.Replace(" ", "▁"), lambda: n.Replace(Regex(r"\s+"), " "),
                   lambda: n.Replace("e", ""), lambda: n.BertNormalizer(flag, not flag, True, flag)], 3)
    splits = some([p.Whitespace, p.WhitespaceSplit, p.BertPreTokenizer, lambda: p.Punctuation(behavior),
                   lambda: p.Digits(flag), lambda: p.Metaspace(prepend_scheme=chance.choice(["always", "never"]), split=flag),
                   lambda: p.CharDelimiterSplit("e"), lambda: p.Split(" ", behavior, flag), lambda: split(r"\w+|\d", behavior, flag),
                   lambda: split(r"\b|^\s|[aeiou]$", behavior), lambda: split(r"(?<=[a-z])[A-Z]|(?=[0-9])|\W", behavior),
                   lambda: split(QWEN), lambda: split(LLAMA_3, behavior, flag)], 3)
    kind = chance.choice(["BPE", "BPE", "bytes", "bytes", "WordPiece", "WordLevel", "Unigram"])
    if kind == "bytes":
        splits.append(p.ByteLevel(add_prefix_space=chance.choice([True, False]), use_regex=flag))
        tokenizer = Tokenizer(models.BPE(ignore_merges=flag))
        tokenizer.decoder = decoders.ByteLevel()
    elif kind == "BPE":
        options = {"unk_token": "<unk>", "end_of_word_suffix": "</w>", "continuing_subword_prefix": "@@"}
        tokenizer = Tokenizer(models.BPE(fuse_unk=flag, **{k: v for k, v in options.items() if chance.random() < 0.5}))
    elif kind == "WordPiece":
        tokenizer = Tokenizer(models.WordPiece(unk_token="<unk>", max_input_chars_per_word=20))
        tokenizer.decoder = decoders.WordPiece(cleanup=flag)
    elif kind == "WordLevel":
        tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
    else:
        tokenizer = Tokenizer(models.Unigram())
        tokenizer.decoder = decoders.Metaspace(prepend_scheme=chance.choice(["always", "never"]))
    if normal:
        tokenizer.normalizer = n.Sequence(normal)
    if splits:
        tokenizer.pre_tokenizer = p.Sequence(splits)
    # Words that are whole texts teach nothing.
    trained(tokenizer, [line for text in texts for line in text.splitlines()][:400], ["<unk>"], 4000 if kind == "Unigram" else 700,
            p.ByteLevel.alphabet() if kind == "bytes" else ())
    options = {key: chance.choice([True, False]) for key in ("lstrip", "rstrip", "single_word", "normalized")}
    tokenizer.add_tokens([AddedToken("word", **options), AddedToken("Speak,", normalized=flag)])
    tokenizer.add_special_tokens([AddedToken("[MASK]", lstrip=flag, rstrip=not flag, special=True, normalized=False)])
    return tokenizer
