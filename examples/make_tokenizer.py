#!/usr/bin/env python3
"""Trains a byte-pair tokenizer on a text: make_tokenizer.py TEXT --size 512. Standard library only.

Writes a tokenizer.json of the kind of GPT-2's: bytes, then the pair of neighbours that is most frequent inside words, again and
again, until there are as many tokens as asked for (Sennrich and others, 2016). For large texts Hugging Face's `tokenizers` does
the same faster.
"""
import argparse
import collections
import json
import pathlib
import re

WORDS = re.compile(r"'(?:[sdmt]|ll|ve|re)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")


def byte_letters():
    """A letter that can be seen for each byte, as GPT-2 writes them: those that print stand for themselves."""
    seen = [*range(33, 127), *range(161, 173), *range(174, 256)]
    return {byte: chr(byte if byte in seen else 256 + byte - sum(s < byte for s in seen)) for byte in range(256)}


def merged(word, pair):
    """The word with each occurrence of the pair as one token."""
    tokens, i = [], 0
    while i < len(word):
        both = tuple(word[i:i + 2]) == pair
        tokens.append(word[i] + word[i + 1] if both else word[i])
        i += 2 if both else 1
    return tokens


def train(text, size):
    """All tokens, and the pairs that were merged, in order; of pairs as frequent as each other the first in the alphabet."""
    letters = byte_letters()
    tokens, merges = sorted(letters.values()), []
    times = collections.Counter(WORDS.findall(text))
    words = {word: [letters[byte] for byte in word.encode()] for word in times}
    pairs, where = collections.Counter(), collections.defaultdict(set)

    def count(word, sign):
        for pair in zip(words[word], words[word][1:]):
            pairs[pair] += sign * times[word]
            where[pair].add(word)

    for word in words:
        count(word, 1)
    while len(tokens) < size and pairs and (best := min(pairs, key=lambda pair: (-pairs[pair], pair))) and pairs[best] > 1:
        for word in where.pop(best):
            count(word, -1)
            words[word] = merged(words[word], best)
            count(word, 1)
        merges.append(best)
        tokens.append("".join(best))
    return tokens, merges


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("--size", type=int, default=512, help="tokens, 256 of which are bytes (512)")
    parser.add_argument("--to", type=pathlib.Path, default=pathlib.Path("data/tokenizer.json"), help="data/tokenizer.json")
    arguments = parser.parse_args()
    tokens, merges = train(arguments.text.read_text(encoding="utf-8"), arguments.size)
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    model = {"type": "BPE", "vocab": {token: i for i, token in enumerate(tokens)}, "merges": merges}
    arguments.to.parent.mkdir(parents=True, exist_ok=True)
    arguments.to.write_text(json.dumps({"version": "1.0", "pre_tokenizer": level, "decoder": level, "model": model},
                                       ensure_ascii=False, indent=1), encoding="utf-8")
    print(f"{arguments.to}: {len(tokens)} tokens, the last {tokens[-3:]}")


if __name__ == "__main__":
    main()
